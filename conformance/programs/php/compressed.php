<?php
// Calls the bookshop through a gateway with the header block that asks for compression.
//
// Usage: compressed.php WSDL ISBN
// Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
declare(strict_types=1);

$failed = false;

function check(string $what, bool $holds, mixed $why): void
{
    global $failed;
    $failed = $failed || !$holds;
    echo $holds ? "ok $what\n" : "FAILED $what: " . json_encode($why) . "\n";
}

[, $wsdl, $isbn] = $argv;
foreach ([SOAP_1_1 => 'SOAP 1.1', SOAP_1_2 => 'SOAP 1.2'] as $number => $version) {
    foreach (['always' => true, 'never' => false] as $wish => $compressed) {
        // SoapClient decodes gzip by itself once it may accept it.
        $client = new SoapClient($wsdl, [
            'soap_version' => $number,
            'trace' => true,
            'cache_wsdl' => WSDL_CACHE_NONE,
            'compression' => SOAP_COMPRESSION_ACCEPT | SOAP_COMPRESSION_GZIP,
        ]);
        $client->__setSoapHeaders(new SoapHeader('urn:posthaste:wsqos', 'compression', $wish));
        $reply = $client->BookHeavy1(['isbn' => $isbn]);
        check("$version, $wish: a book", isset($reply->Book), $reply);
        $head = (string) $client->__getLastResponseHeaders();
        $is = stripos($head, 'content-encoding: gzip') !== false;
        check("$version, $wish: coding", $is === $compressed, $head);
    }
}
exit($failed ? 1 : 0);
