/* The benchmark's peer: the bookshop's BookLite as gSOAP serves it, from the same WSDL.
 *
 * Usage: server PORT SOURCE ISBN
 * Asks the bookshop at SOURCE once for the book, then answers every BookLite with it: the same
 * fields, serialised anew each time. A pool of threads, each with one connection at a time, which
 * is kept as long as the client likes. Runs until it is ended.
 */

#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "BookshopSoap11.nsmap"
#include "soapH.h"

#define THREADS 64

static struct _ns1__BookLiteResponse kept;

int __ns1__BookLite(struct soap *soap, struct _ns1__BookLite *request,
                    struct _ns1__BookLiteResponse *reply) {
  (void)soap;
  (void)request;
  *reply = kept;
  return SOAP_OK;
}

int __ns1__BookLite_(struct soap *soap, struct _ns1__BookLite *request,
                     struct _ns1__BookLiteResponse *reply) {
  return __ns1__BookLite(soap, request, reply);
}

/* The other operations have to be there; the benchmark asks for none of them. */
#define NOT_OFFERED(NAME)                                                                          \
  int __ns1__##NAME(struct soap *soap, struct _ns1__##NAME *request,                               \
                    struct _ns1__##NAME##Response *reply) {                                        \
    (void)request;                                                                                 \
    (void)reply;                                                                                   \
    return soap_sender_fault(soap, "only BookLite is offered here", NULL);                         \
  }                                                                                                \
  int __ns1__##NAME##_(struct soap *soap, struct _ns1__##NAME *request,                            \
                       struct _ns1__##NAME##Response *reply) {                                     \
    return __ns1__##NAME(soap, request, reply);                                                    \
  }

NOT_OFFERED(Hello)
NOT_OFFERED(BookHeavy1)
NOT_OFFERED(BookHeavy2)
NOT_OFFERED(BookHeavy3)
NOT_OFFERED(BookHeavy5)

static void *serve(void *master) {
  struct soap *soap = soap_copy(master);
  int on = 1;
  while (soap_valid_socket(soap_accept(soap))) {
    setsockopt(soap->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    soap_serve(soap);
    soap_destroy(soap);
    soap_end(soap);
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 4)
    return 2;
  struct soap *source = soap_new1(SOAP_C_UTFSTRING);
  struct _ns1__BookLite request = {arguments[3]};
  if (soap_call___ns1__BookLite(source, arguments[2], NULL, &request, &kept)) {
    soap_print_fault(source, stderr);
    return 1;
  }
  struct soap *master = soap_new1(SOAP_C_UTFSTRING | SOAP_IO_KEEPALIVE);
  master->max_keep_alive = 1000000000;
  master->bind_flags = SO_REUSEADDR;
  if (!soap_valid_socket(soap_bind(master, "127.0.0.1", atoi(arguments[1]), 512))) {
    soap_print_fault(master, stderr);
    return 1;
  }
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, serve, master);
  pthread_join(threads[0], NULL);
  return 0;
}
