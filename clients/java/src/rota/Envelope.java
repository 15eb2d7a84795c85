package rota;

import java.util.List;

/**
 * The destinations, the guarantee and the kind of a message.
 *
 * @param to groups, and clients by their private names {@code #client#daemon}, from 1 to 100. A receiver that is in several
 *     gets the message once.
 * @param service the guarantee; null is the client's
 * @param kind the application's number for this kind of message, from 0 to 65535
 * @param selfDiscard this client does not want the message back
 */
public record Envelope(List<String> to, Service service, int kind, boolean selfDiscard) {
    /** To these, with the client's guarantee and kind 0. */
    public static Envelope to(String... destinations) {
        return new Envelope(List.of(destinations), null, 0, false);
    }

    /** The same with another guarantee. */
    public Envelope service(Service service) {
        return new Envelope(to, service, kind, selfDiscard);
    }

    /** The same with another kind. */
    public Envelope kind(int kind) {
        return new Envelope(to, service, kind, selfDiscard);
    }

    /** The same, but this client does not want it back. */
    public Envelope withoutMe() {
        return new Envelope(to, service, kind, true);
    }
}
