"""Python's ordinary clients ask a broker: requests, zeep and lxml. Takes URL TOKEN SCHEMA, prints a line for each check."""

import json
import sys

import requests
import zeep
from lxml import etree
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

URL, TOKEN, SCHEMA = sys.argv[1:4]
AUTHORITY = {"Authorization": f"Bearer {TOKEN}"}
failed = []


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


description = requests.get(f"{URL}/openapi.json", timeout=10).json()
try:
    validate(description)
    check("OpenAPI 3.1", True)
except Exception as error:  # whatever the validator calls it
    check("OpenAPI 3.1", False, error)


def told_by(name, document):
    """Whether a document is as the description says."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
    errors = [error.message for error in OAS31Validator(schema).iter_errors(document)]
    check(f"{name} is as described", not errors, errors)


def offer(name, milliseconds, amount):
    server = {"processingTime": milliseconds, "availability": 0.999}
    price = {"amount": amount, "currency": "EUR"}
    qos = {"defaultQoSInfo": {"serverQoSMetrics": server}, "price": price}
    return {"name": name, "expires": "2035-01-01T00:00:00Z", "qos": qos}


def ask(milliseconds):
    qos = {"defaultQoSInfo": {"serverQoSMetrics": {"processingTime": milliseconds}}}
    question = {"type": "uddi:peer/books", "requirements": {"qos": qos}}
    told_by("Question", question)
    return requests.post(f"{URL}/v1/best-offer", json=question, timeout=10).json()


path = f"{URL}/v1/offers/uddi:peer%2Fbooks/ada"
stream = requests.get(f"{URL}/v1/changes", stream=True, timeout=10)
for gold in [offer("Gold", 100, "0.40"), offer("Silver", 500, "0.10")]:
    told_by("Offer", gold)
    reply = requests.put(f"{path}/{gold['name']}", json=gold, headers=AUTHORITY, timeout=10)
    check(f"PUT {gold['name']}", reply.status_code == 201, reply.text)
reply = requests.put(f"{path}/Gold", json=offer("Gold", 100, "0.40"), timeout=10)
check("PUT without a token", reply.status_code == 401, reply.text)
told_by("Problem", reply.json())
reply = requests.get(f"{path}/Gold", timeout=10)
told_by("Offer", reply.json())
stale = {"If-Match": '"0000000000000000"', **AUTHORITY}
reply = requests.put(f"{path}/Gold", json=offer("Gold", 1, "0.01"), headers=stale, timeout=10)
check("PUT of what has changed", reply.status_code == 412, reply.text)

answer = ask(300)
told_by("Answer", answer)
check("the cheapest that is enough", answer["offer"]["name"] == "Gold", answer)
answer = ask(50)
told_by("Answer", answer)
check("what speaks against each", len(answer["reasons"]) == 2, answer)
told_by("Listed", requests.get(f"{URL}/v1/offers?type=uddi:peer%2Fbooks", timeout=10).json())

names = []
for line in stream.iter_lines():
    if line.startswith(b"data: {"):
        names.append(json.loads(line[6:])["name"])
    if len(names) == 2:
        break
check("the stream of changes", names == ["Gold", "Silver"], names)

schema = etree.XMLSchema(etree.parse(SCHEMA))
requirements = etree.fromstring(
    '<q:wsqos xmlns:q="http://wsqos.org/"><definition><requirements><defaultQoSInfo><serverQoSMetrics>'
    "<processingTime>300</processingTime></serverQoSMetrics></defaultQoSInfo></requirements></definition></q:wsqos>"
)
for version, port in [("1.1", "BrokerSoap11"), ("1.2", "BrokerSoap12")]:
    client = zeep.Client(f"{URL}/soap?wsdl", port_name=port)
    found = client.service.GetBestOffer(tModelKey="uddi:peer/books", requirements={"_value_1": requirements})
    document = found.offer._value_1
    check(f"SOAP {version} GetBestOffer", found.provider == "ada", found)
    check(f"SOAP {version}: the offer obeys the schema", schema.validate(document), schema.error_log)
    check(f"SOAP {version}: its name", document.find(".//qosOffer").get("name") == "Gold", document)
    offers = client.service.AvailableOffersInfo(tModelKey="uddi:peer/books")
    check(f"SOAP {version} AvailableOffersInfo", [entry.name for entry in offers] == ["Silver", "Gold"], offers)
    check(f"SOAP {version} GetTrustedProviders", client.service.GetTrustedProviders() == ["ada"])
    check(f"SOAP {version} GetRegistryLocation", client.service.GetRegistryLocation() == f"{URL}/soap")
    try:
        client.service.GetBestOffer(tModelKey="uddi:peer/books", requirements={"_value_1": etree.Element("other")})
        check(f"SOAP {version}: a fault", False, "none")
    except zeep.exceptions.Fault as fault:
        check(f"SOAP {version}: a fault", "wsqos" in fault.message, fault.message)

sys.exit(bool(failed))
