"""What curl and grpcio make of each form of a reply.

    oracle.py CURL HTTP1 HTTP2 HTTP3 GRPC

The arguments are the program curl and the addresses of server.py. Each line of the output is a JSON object: protocol,
form, the options of its request, whether the client accepts the reply, and its words.
"""

import collections
import json
import subprocess
import sys
from io import BytesIO

import grpc
from curl_cffi import Curl, CurlError, CurlHttpVersion, CurlInfo, CurlOpt

import forms

SECONDS = 3


def of_curl(curl, protocol, url, form):
    """Debian's curl."""
    version = {"http1": "--http1.1", "http2": "--http2-prior-knowledge"}[protocol]
    words = [curl, "--disable", "--silent", "--noproxy", "*", version, "--max-time", str(SECONDS)]
    words += ["--output", "/dev/null", "--write-out", "%{http_code} %{exitcode} %{errormsg}"]
    words += ["--head"] if form.method == "HEAD" else []
    words += ["--compressed"] if form.decode else []
    # curl writes the head of a reply to HEAD, also one that is not text.
    done = subprocess.run([*words, url], stdout=subprocess.PIPE, check=False)
    status, code, *text = done.stdout.decode("latin-1").split(" ", 2)
    if int(code) in (2, 3, 6, 7):
        raise SystemExit(f"curl failed for {url}: {code} {text}")
    return int(code) == 0, status if int(code) == 0 else f"exit {code}"


def of_libcurl(url, form):
    """A libcurl with HTTP/3."""
    curl = Curl()
    curl.setopt(CurlOpt.URL, url.encode())
    curl.setopt(CurlOpt.HTTP_VERSION, CurlHttpVersion.V3ONLY)
    # The certificate is the server's own.
    curl.setopt(CurlOpt.SSL_VERIFYPEER, 0)
    curl.setopt(CurlOpt.SSL_VERIFYHOST, 0)
    curl.setopt(CurlOpt.TIMEOUT, SECONDS)
    curl.setopt(CurlOpt.NOBODY, int(form.method == "HEAD"))
    if form.decode:
        curl.setopt(CurlOpt.ACCEPT_ENCODING, b"gzip")
    for sink in (CurlOpt.WRITEDATA, CurlOpt.HEADERDATA):
        curl.setopt(sink, BytesIO())
    try:
        curl.perform()
    except CurlError as error:
        code = int(error.code)
        if code in (1, 2, 3, 4, 6, 7, 48):
            raise SystemExit(f"libcurl failed for {url}: {error}") from error
        return False, f"exit {code}"
    finally:
        status = curl.getinfo(CurlInfo.RESPONSE_CODE)
        curl.close()
    return True, str(status)


def of_grpcio(address, form):
    """grpcio. The call ends with a status in any case. Only OK with a message accepts the reply."""
    with grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)]) as channel:
        call = channel.unary_unary("/forms.Forms/Get")
        try:
            message, call = call.with_call(b"", timeout=SECONDS, metadata=[("form", form.name)])
        except grpc.RpcError as error:
            return False, error.code().name
    if message is None:
        return False, f"{call.code().name}, no message"
    return True, call.code().name


def settled(judge, *request):
    """The verdict that a client gives three times. Few forms end in a race inside the client."""
    counts = collections.Counter()
    while max(counts.values(), default=0) < 3:
        if counts.total() == 9:
            raise SystemExit(f"no verdict about {request[-1].name}: {counts}")
        counts[judge(*request)] += 1
    return counts.most_common(1)[0][0]


def main():
    curl, http1, http2, http3, call = sys.argv[1:6]
    for protocol, all_forms in forms.PROTOCOLS.items():
        for form in all_forms:
            if protocol == "grpc":
                accepts, word = settled(of_grpcio, call, form)
            elif protocol == "http3":
                accepts, word = settled(of_libcurl, f"https://{http3}/{form.name}", form)
            else:
                place = http1 if protocol == "http1" else http2
                accepts, word = settled(of_curl, curl, protocol, f"http://{place}/{form.name}", form)
            line = {
                "protocol": protocol,
                "form": form.name,
                "description": form.description,
                "method": form.method,
                "decode": form.decode,
                "accepts": accepts,
                "word": word,
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
