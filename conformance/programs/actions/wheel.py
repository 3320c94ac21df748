"""Makes a wheel in the folder FOLDER. Its command `posthaste` is the script SCRIPT.

usage: wheel.py FOLDER SCRIPT
"""

import sys
import zipfile

NAME = "posthaste_http-0.1.0"
FILES = {
    f"{NAME}.data/scripts/posthaste": sys.argv[2],
    f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: posthaste-http\nVersion: 0.1.0\n",
    f"{NAME}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{NAME}.dist-info/RECORD": "",
}

with zipfile.ZipFile(f"{sys.argv[1]}/{NAME}-py3-none-any.whl", "w") as wheel:
    for path, text in FILES.items():
        entry = zipfile.ZipInfo(path)
        entry.external_attr = 0o100755 << 16
        wheel.writestr(entry, text)
