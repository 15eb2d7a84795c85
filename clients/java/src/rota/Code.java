package rota;

/** Why a daemon refuses a client, fails a request, or closes a connection. Later daemons may have others. */
public record Code(int number) {
    public static final Code VERSION = new Code(1);
    public static final Code NAME_IN_USE = new Code(2);
    public static final Code ILLEGAL_NAME = new Code(3);
    public static final Code TOO_MANY_CLIENTS = new Code(4);
    public static final Code NOT_ALLOWED = new Code(5);
    public static final Code SHUTTING_DOWN = new Code(6);
    public static final Code TOO_SLOW = new Code(7);
    public static final Code PROTOCOL_ERROR = new Code(8);
    public static final Code CREDIT_EXCEEDED = new Code(9);
    public static final Code QUOTA = new Code(10);
    public static final Code TOO_LARGE = new Code(11);
    public static final Code TIMED_OUT = new Code(12);
    public static final Code UNAVAILABLE = new Code(13);

    private static final String[] TEXTS = {
        null,
        "no version of the protocol in common",
        "another client of this daemon has that name",
        "not a name",
        "the daemon has as many clients as it may",
        "not allowed",
        "the daemon is shutting down",
        "the client did not take its events fast enough",
        "not the protocol",
        "more was sent than the credit",
        "the daemon takes no more of these",
        "the message is too large",
        "no hello in time",
        "the daemon cannot do it now",
    };

    /** Whether the same may succeed later without anybody having changed it. */
    public boolean mayPass() {
        return switch (number) {
            case 1, 3, 5, 8, 9, 11 -> false;
            default -> true;
        };
    }

    /** A failure and this reason; the daemon's words too, unless they say the same. */
    String reason(String what, String text) {
        String more = text.isEmpty() || text.equals(toString()) ? "" : " (" + text + ")";
        return what + ": " + this + more;
    }

    @Override
    public String toString() {
        return number > 0 && number < TEXTS.length ? TEXTS[number] : "code " + number;
    }
}
