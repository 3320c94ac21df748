/* Calls the bookshop with stubs that gSOAP made from its WSDL.
 *
 * Usage: client WSDL ISBN TITLE
 * Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
 */

#include <stdio.h>
#include <string.h>

#include "BookshopSoap11.nsmap"
#include "soapH.h"

static int failed = 0;

static void check(const char *version, const char *what, int holds, const char *why) {
  failed |= !holds;
  if (holds)
    printf("ok %s %s\n", version, what);
  else
    printf("FAILED %s %s: %s\n", version, what, why ? why : "nothing");
}

/* What went wrong with a call that should have worked, if anything did. */
static const char *trouble(struct soap *soap, const char *otherwise) {
  if (!soap->error)
    return otherwise;
  soap_set_fault(soap);
  const char **reason = soap_faultstring(soap);
  return reason && *reason ? *reason : "no reason given";
}

static int same(const char *one, const char *other) {
  return one && other && strcmp(one, other) == 0;
}

static void check_books(struct soap *soap, const char *url, const char *version, char *isbn,
                        const char *title) {
  struct _ns1__BookLite lite = {isbn};
  struct _ns1__BookLiteResponse one = {0};
  int error = soap_call___ns1__BookLite(soap, url, NULL, &lite, &one);
  const char *found = error || !one.Book ? NULL : one.Book->title;
  check(version, "BookLite", same(found, title), trouble(soap, found));

  struct _ns1__BookHeavy5 heavy = {isbn};
  struct _ns1__BookHeavy5Response five = {0};
  error = soap_call___ns1__BookHeavy5(soap, url, NULL, &heavy, &five);
  int holds = !error && five.__sizeBook == 5 && same(five.Book[0].title, title);
  check(version, "BookHeavy5", holds, trouble(soap, "not five books, or another first"));
  holds = holds && five.Book[4].__sizeReview > 0 && five.Book[4].Review[0].rating > 0;
  check(version, "BookHeavy5 has reviews", holds, "the last book has none");

  struct _ns1__Hello hello = {isbn};
  struct _ns1__HelloResponse reply = {0};
  error = soap_call___ns1__Hello(soap, url, NULL, &hello, &reply);
  holds = !error && reply.text && strstr(reply.text, isbn);
  check(version, "Hello", holds, trouble(soap, reply.text));
}

static void check_fault(struct soap *soap, const char *url, const char *version, char *isbn,
                        const char *code, const char *problem) {
  struct _ns1__BookLite lite = {isbn};
  struct _ns1__BookLiteResponse one = {0};
  if (soap_call___ns1__BookLite(soap, url, NULL, &lite, &one) == SOAP_OK) {
    check(version, problem, 0, "a reply instead of a fault");
    return;
  }
  soap_set_fault(soap);
  const char **said = soap_faultcode(soap);
  const char *local = said && *said ? strrchr(*said, ':') : NULL;
  check(version, "fault code", same(local ? local + 1 : NULL, code), said ? *said : NULL);
  const char **reason = soap_faultstring(soap);
  int holds = reason && *reason && strstr(*reason, isbn);
  check(version, "reason names the ISBN", holds, reason ? *reason : NULL);
  struct SOAP_ENV__Detail *detail = NULL;
  if (soap->fault)
    detail = soap->version == 2 ? soap->fault->SOAP_ENV__Detail : soap->fault->detail;
  struct ns1__BookFault *fault = detail ? detail->ns1__BookFault : NULL;
  holds = fault && same(fault->problem, problem) && same(fault->isbn, isbn);
  check(version, problem, holds, fault ? fault->problem : "no BookFault in the detail");
}

/* gSOAP speaks the version whose namespaces stand first in its table; generated for both, that is
 * 1.2. */
static void speak(struct soap *soap, int version) {
  namespaces[0].ns = version == 1 ? "http://schemas.xmlsoap.org/soap/envelope/"
                                  : "http://www.w3.org/2003/05/soap-envelope";
  namespaces[1].ns = version == 1 ? "http://schemas.xmlsoap.org/soap/encoding/"
                                  : "http://www.w3.org/2003/05/soap-encoding";
  soap_set_namespaces(soap, namespaces);
}

int main(int count, char **arguments) {
  if (count != 4)
    return 2;
  /* The stubs call the address that the WSDL names when they are given none. */
  const char *url = NULL;
  char *isbn = arguments[2];
  char broken[16];
  snprintf(broken, sizeof broken, "%s", isbn);
  size_t last = strlen(broken) - 1;
  broken[last] = broken[last] == '0' ? '1' : '0';

  for (int version = 1; version <= 2; version++) {
    const char *name = version == 1 ? "SOAP 1.1" : "SOAP 1.2";
    const char *sender = version == 1 ? "Client" : "Sender";
    struct soap *soap = soap_new1(SOAP_C_UTFSTRING | SOAP_IO_KEEPALIVE);
    speak(soap, version);
    soap->recv_timeout = soap->send_timeout = 10;
    check_books(soap, url, name, isbn, arguments[3]);
    check_fault(soap, url, name, "0000000000", sender, "unknown-isbn");
    check_fault(soap, url, name, broken, sender, "invalid-isbn");
    soap_end(soap);
    soap_free(soap);
  }
  return failed;
}
