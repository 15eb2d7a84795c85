package rota;

/** Why bytes are no frame of a daemon: the connection ends behind them. */
final class DecodeException extends Exception {
    private static final long serialVersionUID = 1;
    /** One word for each kind of error. */
    final String why;

    DecodeException(String why, String text) {
        super(text);
        this.why = why;
    }
}
