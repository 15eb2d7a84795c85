package rota;

import java.time.Duration;

/** The options of a client before it connects. What is not said has its default. */
public final class Options {
    String name = "";
    boolean membership;
    WhenSlow whenSlow = WhenSlow.DEFAULT;
    Service service = Service.AGREED;
    boolean insecure;
    Duration timeout = Duration.ofSeconds(30);
    long unreadBytes = 16 << 20;
    Tls tls;

    /** The longest of all waits. */
    private static final Duration LONGEST = Duration.ofDays(10_000);

    /** A duration in nanoseconds, from none to 10,000 days: it may be longer than a number can say. */
    static long nanos(Duration duration) {
        if (duration.isNegative()) {
            return 0;
        }
        return (duration.compareTo(LONGEST) > 0 ? LONGEST : duration).toNanos();
    }

    Options copy() {
        Options copy = new Options();
        copy.name = name;
        copy.membership = membership;
        copy.whenSlow = whenSlow;
        copy.service = service;
        copy.insecure = insecure;
        copy.timeout = timeout;
        copy.unreadBytes = unreadBytes;
        copy.tls = tls;
        return copy;
    }

    /**
     * What the client asks to be called at its daemon: 1 to 10 characters from '$' to '~', unique among the clients of that
     * daemon. Without this call the daemon invents a name.
     */
    public Options name(String name) {
        this.name = name;
        return this;
    }

    /** Whether the client gets views, transitional signals and self-leaves; false. */
    public Options membership(boolean membership) {
        this.membership = membership;
        return this;
    }

    /** The policy for this client if it takes its events too slowly; the daemon's own. */
    public Options whenSlow(WhenSlow whenSlow) {
        this.whenSlow = whenSlow;
        return this;
    }

    /** The guarantee for messages whose envelope names none; agreed. */
    public Options service(Service service) {
        this.service = service;
        return this;
    }

    /** Whether TCP may leave this machine, although everybody on the way can read and change everything; false. */
    public Options insecure(boolean insecure) {
        this.insecure = insecure;
        return this;
    }

    /** How long the daemon may take to let the client in, and to answer a request; 30 s. */
    public Options timeout(Duration timeout) {
        this.timeout = timeout;
        return this;
    }

    /**
     * About how many bytes of events may lie unread; 16 MiB. At more, nothing is read until some are taken: then the daemon does
     * what it does with clients that read too slowly.
     */
    public Options unreadBytes(long bytes) {
        this.unreadBytes = bytes;
        return this;
    }

    /** The certificates by which this client and a daemon at a {@code tls:} address know each other. */
    public Options tls(Tls tls) {
        this.tls = tls;
        return this;
    }

    /**
     * Connects to the path of a Unix socket, {@code tcp:HOST:PORT} or {@code tls:HOST:PORT}, and waits until the daemon has let
     * the client in.
     */
    public Client connect(String address) throws RotaException, InterruptedException {
        return Client.connect(address, copy());
    }
}
