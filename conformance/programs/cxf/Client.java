import bookshop.BookFaultMessage;
import bookshop.BookLite;
import bookshop.Bookshop;
import bookshop.Bookshop_Service;
import jakarta.xml.soap.SOAPException;
import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.handler.MessageContext;
import jakarta.xml.ws.handler.soap.SOAPHandler;
import jakarta.xml.ws.handler.soap.SOAPMessageContext;
import java.net.URI;
import java.util.List;
import java.util.Set;
import javax.xml.namespace.QName;
import org.apache.cxf.transport.http.HTTPConduit;

/**
 * Calls the bookshop with classes that CXF made from its WSDL.
 *
 * <p>Usage: Client WSDL ISBN TITLE. Prints {@code ok WHAT} or {@code FAILED WHAT: WHY} for every
 * check; exits 1 when one failed.
 */
public final class Client {
  private static boolean failed = false;

  /** Notes the code of the last fault: a generated exception has only its reason and detail. */
  private static final class Codes implements SOAPHandler<SOAPMessageContext> {
    private String last = "none";

    @Override
    public boolean handleFault(SOAPMessageContext context) {
      try {
        last = context.getMessage().getSOAPBody().getFault().getFaultCodeAsQName().getLocalPart();
      } catch (SOAPException error) {
        last = error.toString();
      }
      return true;
    }

    @Override
    public boolean handleMessage(SOAPMessageContext context) {
      return true;
    }

    @Override
    public void close(MessageContext context) {}

    @Override
    public Set<QName> getHeaders() {
      return Set.of();
    }
  }

  private static void check(String what, boolean holds, Object why) {
    failed |= !holds;
    System.out.println(holds ? "ok " + what : "FAILED " + what + ": " + why);
  }

  private static BookLite lite(String isbn) {
    BookLite request = new BookLite();
    request.setIsbn(isbn);
    return request;
  }

  private static void checkFault(
      String what, Bookshop shop, Codes codes, String isbn, String code, String problem) {
    try {
      check(what, false, shop.bookLite(lite(isbn)).getBook().getTitle());
    } catch (BookFaultMessage fault) {
      check(what + ": code " + code, codes.last.equals(code), codes.last);
      check(what + ": reason names " + isbn, fault.getMessage().contains(isbn), fault.getMessage());
      boolean typed =
          fault.getFaultInfo().getProblem().equals(problem)
              && fault.getFaultInfo().getIsbn().equals(isbn);
      check(what + ": typed detail", typed, fault.getFaultInfo().getProblem());
    }
  }

  public static void main(String[] arguments) throws Exception {
    String isbn = arguments[1];
    String title = arguments[2];
    String broken = isbn.substring(0, isbn.length() - 1) + (isbn.endsWith("0") ? "1" : "0");
    Bookshop_Service service = new Bookshop_Service(URI.create(arguments[0]).toURL());
    for (boolean is12 : List.of(false, true)) {
      String version = is12 ? "SOAP 1.2" : "SOAP 1.1";
      Bookshop shop = is12 ? service.getBookshopSoap12() : service.getBookshopSoap11();
      BindingProvider provider = (BindingProvider) shop;
      // SOAP 1.2 has Sender faults come with status 400 (part 2, table 17); CXF must be told.
      provider.getRequestContext().put(HTTPConduit.PROCESS_FAULT_ON_HTTP_400, true);
      Codes codes = new Codes();
      provider.getBinding().setHandlerChain(List.of(codes));

      String found = shop.bookLite(lite(isbn)).getBook().getTitle();
      check(version + " BookLite", found.equals(title), found);
      List<bookshop.Book> books = shop.bookHeavy5(isbn);
      boolean five = books.size() == 5 && books.get(0).getTitle().equals(title);
      check(version + " BookHeavy5", five, books.size());
      boolean reviewed = books.stream().allMatch(book -> !book.getReview().isEmpty());
      check(version + " BookHeavy5 has reviews", reviewed, "a book without");
      String greeting = shop.hello(isbn);
      check(version + " Hello", !greeting.isBlank(), greeting);

      String sender = is12 ? "Sender" : "Client";
      checkFault(version + " unknown ISBN", shop, codes, "0000000000", sender, "unknown-isbn");
      checkFault(version + " bad checksum", shop, codes, broken, sender, "invalid-isbn");
    }
    System.exit(failed ? 1 : 0);
  }
}
