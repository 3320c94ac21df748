// jUDDI by itself: a registry of UDDI 3 and 2 over HTTP, without an application server, in memory.
//
// Takes the port, and the first folder of its class path, into which it writes what jUDDI does not ship: the list of its
// own entities, for Hibernate. Says "ready" once all of it answers.

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import javax.persistence.Embeddable;
import javax.persistence.Entity;
import javax.persistence.MappedSuperclass;
import javax.xml.ws.Endpoint;
import org.apache.juddi.api.impl.UDDIInquiryImpl;
import org.apache.juddi.api.impl.UDDIPublicationImpl;
import org.apache.juddi.api.impl.UDDISecurityImpl;
import org.apache.juddi.api.impl.UDDIv2InquiryImpl;
import org.apache.juddi.api.impl.UDDIv2PublishImpl;

public class Registry {
    private static final String MODEL = "org/apache/juddi/model/";

    public static void main(String[] arguments) throws Exception {
        String base = "http://127.0.0.1:" + arguments[0] + "/juddiv3";
        System.setProperty("juddi.server.baseurl", base);
        System.setProperty("juddi.server.baseurlsecure", base);
        Path folder = Files.createDirectories(Path.of(arguments[1], "META-INF"));
        Files.writeString(folder.resolve("persistence.xml"), persistence());
        org.apache.juddi.Registry.start();
        publish(base, "security", new UDDISecurityImpl());
        publish(base, "publish", new UDDIPublicationImpl());
        publish(base, "publishv2", new UDDIv2PublishImpl());
        publish(base, "inquiryv2", new UDDIv2InquiryImpl());
        publish(base, "inquiry", new UDDIInquiryImpl());
        System.out.println("ready");
        Thread.currentThread().join();
    }

    private static void publish(String base, String name, Object service) {
        Endpoint endpoint = Endpoint.create(service);
        endpoint.setProperties(Map.of("schema-validation-enabled", true));
        endpoint.publish(base + "/services/" + name);
    }

    private static String persistence() throws Exception {
        String classes = entities().stream()
            .map(name -> "    <class>" + name + "</class>\n")
            .collect(Collectors.joining());
        return "<persistence xmlns=\"http://java.sun.com/xml/ns/persistence\" version=\"2.0\">\n"
            + "  <persistence-unit name=\"juddiDatabase\" transaction-type=\"RESOURCE_LOCAL\">\n"
            + "    <provider>org.hibernate.jpa.HibernatePersistenceProvider</provider>\n"
            + classes
            + "    <exclude-unlisted-classes>true</exclude-unlisted-classes>\n"
            + "    <properties>\n"
            + property("javax.persistence.jdbc.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
            + property("javax.persistence.jdbc.url", "jdbc:derby:memory:juddi;create=true")
            + property("hibernate.dialect", "org.hibernate.dialect.DerbyTenSevenDialect")
            + property("hibernate.hbm2ddl.auto", "update")
            + "    </properties>\n  </persistence-unit>\n</persistence>\n";
    }

    private static String property(String name, String value) {
        return "      <property name=\"" + name + "\" value=\"" + value + "\"/>\n";
    }

    /** What the jar of jUDDI has for a database to keep. */
    private static List<String> entities() throws Exception {
        File core = new File(
            org.apache.juddi.Registry.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (JarFile jar = new JarFile(core)) {
            return jar.stream()
                .map(entry -> entry.getName())
                .filter(name -> name.startsWith(MODEL) && name.endsWith(".class"))
                .map(name -> name.substring(0, name.length() - ".class".length()).replace('/', '.'))
                .filter(Registry::isKept)
                .sorted()
                .collect(Collectors.toList());
        }
    }

    private static boolean isKept(String name) {
        try {
            Class<?> found = Class.forName(name, false, Registry.class.getClassLoader());
            return found.isAnnotationPresent(Entity.class)
                || found.isAnnotationPresent(Embeddable.class)
                || found.isAnnotationPresent(MappedSuperclass.class);
        } catch (ClassNotFoundException absent) {
            throw new IllegalStateException(absent);
        }
    }
}
