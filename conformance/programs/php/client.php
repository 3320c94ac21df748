<?php
// Calls the bookshop with PHP's SoapClient, all it knows taken from the WSDL.
//
// Usage: client.php WSDL ISBN TITLE
// Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
declare(strict_types=1);

$failed = false;

function check(string $what, bool $holds, mixed $why): void
{
    global $failed;
    $failed = $failed || !$holds;
    echo $holds ? "ok $what\n" : "FAILED $what: " . json_encode($why) . "\n";
}

// Every title in a reply, in order.
function titles(mixed $value): array
{
    $found = [];
    foreach (is_object($value) || is_array($value) ? (array) $value : [] as $key => $inner) {
        array_push($found, ...($key === 'title' ? [$inner] : titles($inner)));
    }
    return $found;
}

function check_fault(string $what, SoapClient $client, string $isbn, string $code): void
{
    try {
        check($what, false, $client->BookLite(['isbn' => $isbn]));
    } catch (SoapFault $fault) {
        $parts = explode(':', (string) $fault->faultcode);
        check("$what: code $code", end($parts) === $code, $fault->faultcode);
        check("$what: reason names $isbn", str_contains($fault->faultstring, $isbn), $fault->faultstring);
        check("$what: detail", count((array) ($fault->detail ?? [])) === 1, $fault->detail ?? null);
    }
}

[, $wsdl, $isbn, $title] = $argv;
foreach ([SOAP_1_1 => 'SOAP 1.1', SOAP_1_2 => 'SOAP 1.2'] as $number => $version) {
    $client = new SoapClient($wsdl, ['soap_version' => $number, 'cache_wsdl' => WSDL_CACHE_NONE]);

    $found = titles($client->BookLite(['isbn' => $isbn]));
    check("$version BookLite", $found === [$title], $found);
    foreach (['BookHeavy1' => 1, 'BookHeavy5' => 5] as $operation => $count) {
        $found = titles($client->$operation(['isbn' => $isbn]));
        check("$version $operation", count($found) === $count && $found[0] === $title, $found);
    }
    $hello = (array) $client->Hello(['isbn' => $isbn]);
    check("$version Hello", count($hello) > 0, $hello);

    $sender = $number === SOAP_1_2 ? 'Sender' : 'Client';
    $broken = substr($isbn, 0, -1) . (str_ends_with($isbn, '0') ? '1' : '0');
    check_fault("$version unknown ISBN", $client, '0000000000', $sender);
    check_fault("$version bad checksum", $client, $broken, $sender);
}
exit($failed ? 1 : 0);
