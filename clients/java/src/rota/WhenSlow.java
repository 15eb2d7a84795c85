package rota;

/** What becomes of a client that takes its events too slowly, within the limits of the daemon. */
public enum WhenSlow {
    /** What the daemon does with all who do not say. */
    DEFAULT(0),
    /** It is disconnected. */
    DISCONNECT(0b0010),
    /** What waits is dropped: {@link Event.Skipped} says how much. */
    SKIP(0b0100),
    /** Senders to its groups wait for a time; then as {@link #DISCONNECT}. */
    THROTTLE_THEN_DISCONNECT(0b1010),
    /** The same; then as {@link #SKIP}. */
    THROTTLE_THEN_SKIP(0b1100);

    /** The bits of a hello. */
    final int bits;

    WhenSlow(int bits) {
        this.bits = bits;
    }
}
