package rota;

/** The guarantee that a message asks for. */
public enum Service {
    /** Delivered once, on receipt, in no particular order. */
    RELIABLE,
    /** In the order of its sender. */
    FIFO,
    /** Served as agreed. */
    CAUSAL,
    /** In the one order. */
    AGREED,
    /** In the one order, once every daemon is known to have it. */
    SAFE;

    /** The number of frames. */
    int number() {
        return ordinal() + 1;
    }
}
