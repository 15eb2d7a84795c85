package rota;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** The certificates by which a client and a daemon know each other. Only TLS 1.3 is spoken. */
public final class Tls {
    private static final char[] NO_PASSWORD = {};
    private final SSLContext context;
    private final String serverName;

    private Tls(SSLContext context, String serverName) {
        this.context = context;
        this.serverName = serverName;
    }

    /** With a context of the caller's own. */
    public static Tls of(SSLContext context) {
        return new Tls(context, null);
    }

    /**
     * Reads certificates, as PEM: the roots that the daemon's has to come from, and the one that this client shows, with its key
     * (PKCS #8). The latter two are null for a client that shows none, as only some daemons take it.
     */
    public static Tls load(Path ca, Path certificate, Path key) throws IOException, GeneralSecurityException {
        KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
        roots.load(null, NO_PASSWORD);
        int count = 0;
        for (Certificate root : certificates(ca)) {
            roots.setCertificateEntry("root" + count++, root);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(roots);
        KeyManagerFactory keys = null;
        if (certificate != null) {
            KeyStore own = KeyStore.getInstance("PKCS12");
            own.load(null, NO_PASSWORD);
            Certificate[] chain = certificates(certificate).toArray(Certificate[]::new);
            own.setKeyEntry("own", key(key), NO_PASSWORD, chain);
            keys = KeyManagerFactory.getInstance("PKIX");
            keys.init(own, NO_PASSWORD);
        }
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys == null ? null : keys.getKeyManagers(), trust.getTrustManagers(), null);
        return of(context);
    }

    /** The same; the daemon's certificate has to be for this name, and not for the host of the address. */
    public Tls serverName(String name) {
        return new Tls(context, name);
    }

    private static Collection<? extends Certificate> certificates(Path file)
            throws IOException, GeneralSecurityException {
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> found = CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (found.isEmpty()) {
                throw new IOException(file + " has no certificate");
            }
            return found;
        }
    }

    private static PrivateKey key(Path file) throws IOException, GeneralSecurityException {
        String text = Files.readString(file, StandardCharsets.US_ASCII);
        String begin = "-----BEGIN PRIVATE KEY-----";
        int from = text.indexOf(begin);
        int to = text.indexOf("-----END PRIVATE KEY-----");
        if (from < 0 || to < from) {
            throw new IOException(file + " has no key in PKCS #8");
        }
        byte[] encoded = Base64.getMimeDecoder().decode(text.substring(from + begin.length(), to));
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(encoded);
        for (String algorithm : new String[] {"EC", "Ed25519", "RSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (InvalidKeySpecException wrong) {
                // Perhaps the next.
                continue;
            }
        }
        throw new IOException(file + " has a key of an unknown kind");
    }

    /** The client's end of a connection to this host. */
    SSLEngine engine(String host, int port) {
        SSLEngine engine = context.createSSLEngine(serverName == null ? host : serverName, port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setProtocols(new String[] {"TLSv1.3"});
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        engine.setSSLParameters(parameters);
        return engine;
    }
}
