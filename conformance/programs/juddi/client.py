"""What the registry itself says, asked with nothing but Python's own library. Takes the registry's URL and a verb:

fill       many services of other businesses, one of them in a category; says how many
registered what our command has registered; a line for each check
"""

import sys
import urllib.error
import urllib.request
import xml.etree.ElementTree as Tree

URL, VERB = sys.argv[1:3]
SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"
V3 = "{urn:uddi-org:api_v3}"
TYPE = "uddi:peer.test:inventory"
KEYWORDS = "uddi:uddi.org:categorization:general_keywords"
failed = []


def ask(place, name, inner, **attributes):
    """What the Body of a reply has, or None."""
    envelope = Tree.Element(SOAP + "Envelope")
    message = Tree.SubElement(Tree.SubElement(envelope, SOAP + "Body"), V3 + name, attributes)
    for child in inner:
        message.append(child)
    data = Tree.tostring(envelope, encoding="utf-8")
    fields = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}
    request = urllib.request.Request(f"{URL}/{place}", data, fields)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            text = reply.read()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"FAILED {name}: {error.read().decode()}")
    return next(iter(Tree.fromstring(text).find(SOAP + "Body")), None)


def element(name, text=None, children=(), **attributes):
    made = Tree.Element(V3 + name, attributes)
    made.text = text
    made.extend(children)
    return made


def check(what, holds, why=""):
    print(f"ok {what}" if holds else f"FAILED {what}: {why}")
    if not holds:
        failed.append(what)


def found(by, start=1):
    bag = element("tModelBag", children=[element("tModelKey", by)])
    return ask("inquiry", "find_service", [bag], maxRows="1000", listHead=str(start))


def fill():
    token = ask("security", "get_authToken", [], userID="ada", cred="count<ess>").find(V3 + "authInfo").text
    authority = lambda: element("authInfo", token)
    category = element("keyedReference", tModelKey=KEYWORDS, keyName="checked", keyValue="yes")
    for key, bag in [("trusted", [element("categoryBag", children=[category])]), ("stranger", [])]:
        name = element("name", key)
        business = element("businessEntity", children=[name, *bag], businessKey=f"uddi:peer.test:{key}")
        ask("publish", "save_business", [authority(), business])
    services = []
    for number in range(230):
        owner = "trusted" if number % 23 == 0 else "stranger"
        address = element("accessPoint", f"http://127.0.0.1:9/{owner}/{number}", useType="endPoint")
        instance = element("tModelInstanceInfo", tModelKey=TYPE)
        details = element("tModelInstanceDetails", children=[instance])
        binding = element("bindingTemplate", children=[address, details])
        templates = element("bindingTemplates", children=[binding])
        keys = {"businessKey": f"uddi:peer.test:{owner}", "serviceKey": f"uddi:peer.test:s{number}"}
        services.append(element("businessService", None, [element("name", f"s{number}"), templates], **keys))
    ask("publish", "save_service", [authority(), *services])
    print(len(services))


def registered():
    entries = found(TYPE).findall(f"{V3}serviceInfos/{V3}serviceInfo")
    keys = [entry.get("serviceKey") for entry in entries if entry.get("businessKey") == "uddi:peer.test:ada"]
    check("find_service finds ours", keys == ["uddi:peer.test:books"], keys)
    reply = ask("inquiry", "get_serviceDetail", [element("serviceKey", "uddi:peer.test:books")])
    bindings = reply.findall(f".//{V3}bindingTemplate")
    check("one binding, also after a second time", len(bindings) == 1, len(bindings))
    address = bindings[0].findtext(V3 + "accessPoint")
    check("the access point", address.endswith("/soap?a=1&b=2"), address)
    document = bindings[0].findtext(f".//{V3}overviewURL")
    check("the document", document.endswith("/offers.wsqos"), document)
    name = reply.findtext(f"{V3}businessService/{V3}name")
    check("the name", name == "Books & more", name)
    reply = ask("inquiry", "get_tModelDetail", [element("tModelKey", TYPE)])
    wsdl = reply.findtext(f".//{V3}overviewURL")
    check("the type's WSDL", wsdl.endswith("?wsdl"), wsdl)


{"fill": fill, "registered": registered}[VERB]()
sys.exit(1 if failed else 0)
