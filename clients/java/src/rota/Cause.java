package rota;

/** Why there is a new view. */
public enum Cause {
    /** A client joined. */
    JOIN,
    /** A client left. */
    LEAVE,
    /** A client is not connected any more. */
    DISCONNECT,
    /** Daemons have come or gone. */
    NETWORK;
}
