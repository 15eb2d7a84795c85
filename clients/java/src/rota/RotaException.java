package rota;

/** What went wrong, by its class. */
public abstract class RotaException extends Exception {
    private static final long serialVersionUID = 1;

    RotaException(String text, Throwable cause) {
        super(text, cause);
    }

    /** Whether another attempt to connect may succeed without anybody having changed a setting. */
    public boolean mayPass() {
        return false;
    }

    /** There is no connection: nobody listens there, or may not be reached. */
    public static final class NoConnection extends RotaException {
        private static final long serialVersionUID = 1;

        NoConnection(Throwable cause) {
            super("no connection: " + cause, cause);
        }

        @Override
        public boolean mayPass() {
            return true;
        }
    }

    /** A text is no name of a group or a client, or there are no or too many destinations. Nothing was sent. */
    public static final class Invalid extends RotaException {
        private static final long serialVersionUID = 1;

        Invalid(String text) {
            super(text, null);
        }
    }

    /** A payload is above the limit. Nothing of it was sent. */
    public static final class TooLarge extends RotaException {
        private static final long serialVersionUID = 1;
        private final int limit;

        TooLarge(int limit) {
            super("a message may have at most " + limit + " bytes", null);
            this.limit = limit;
        }

        /** The limit, in bytes. */
        public int limit() {
            return limit;
        }
    }

    /** An address is not loopback, and TCP protects nothing: use a Unix socket or TLS, or {@link Options#insecure}. */
    public static final class Insecure extends RotaException {
        private static final long serialVersionUID = 1;

        Insecure(String address) {
            super(address + " is not loopback, and TCP protects nothing", null);
        }
    }

    /** One side does not take the other's certificate, or there are no certificates to trust. */
    public static final class NoTls extends RotaException {
        private static final long serialVersionUID = 1;

        NoTls(String text, Throwable cause) {
            super("no TLS: " + text, cause);
        }
    }

    /** The daemon does not take this client. */
    public static final class Refused extends RotaException {
        private static final long serialVersionUID = 1;
        private final transient Code code;

        Refused(Code code, String text) {
            super(code.reason("refused", text), null);
            this.code = code;
        }

        /** The daemon's reason. */
        public Code code() {
            return code;
        }

        @Override
        public boolean mayPass() {
            return code.mayPass();
        }
    }

    /** The daemon would not join, leave or list. Nothing has changed. */
    public static final class Failed extends RotaException {
        private static final long serialVersionUID = 1;
        private final transient Code code;

        Failed(Code code, String text) {
            super(code.reason("failed", text), null);
            this.code = code;
        }

        /** The daemon's reason. */
        public Code code() {
            return code;
        }
    }

    /** The daemon chose a version that was not offered. */
    public static final class Version extends RotaException {
        private static final long serialVersionUID = 1;

        Version(int version) {
            super("the daemon speaks version " + version, null);
        }
    }

    /** There is no credit now, and the call was not to wait. Nothing was sent. */
    public static final class WouldBlock extends RotaException {
        private static final long serialVersionUID = 1;

        WouldBlock() {
            super("there is no credit now", null);
        }
    }

    /**
     * More events are unread than may be, and none was taken for {@link Options#timeout} while the call waited: take some, then
     * call again. A message was not sent; a request may still take effect.
     */
    public static final class Unread extends RotaException {
        private static final long serialVersionUID = 1;

        Unread() {
            super("too many events are unread: take some first", null);
        }
    }

    /** The daemon did not answer in time. A join or leave may still take effect, and may be made again. */
    public static final class TimedOut extends RotaException {
        private static final long serialVersionUID = 1;

        TimedOut() {
            super("the daemon did not answer in time", null);
        }

        @Override
        public boolean mayPass() {
            return true;
        }
    }

    /** The end of a connection. It is final: connect again, or use {@link Reconnecting}. */
    public static final class Lost extends RotaException {
        private static final long serialVersionUID = 1;

        /** How a connection ends. */
        public enum Loss {
            /** The daemon closed it without a word, or died; or this side closed it. */
            ENDED,
            /** The daemon closed it, and said why: {@link Lost#code}. */
            GOODBYE,
            /**
             * The socket failed, or the stream was cut short: within a frame, or by TLS before the daemon said that it ends. The
             * cause of the exception says more.
             */
            FAILED,
            /** The daemon sent bytes that are not the protocol. */
            PROTOCOL,
            /** The daemon sent a frame that does not belong into a connection. */
            UNEXPECTED,
        }

        private final Loss loss;
        private final transient Code code;

        private Lost(Loss loss, Code code, String text, Throwable cause) {
            super(text, cause);
            this.loss = loss;
            this.code = code;
        }

        static Lost ended() {
            return new Lost(Loss.ENDED, null, "the connection has ended", null);
        }

        static Lost goodbye(Code code, String text) {
            return new Lost(Loss.GOODBYE, code, code.reason("the daemon closed the connection", text), null);
        }

        static Lost failed(Throwable cause) {
            return new Lost(Loss.FAILED, null, "the connection failed: " + cause.getMessage(), cause);
        }

        static Lost protocol(DecodeException why) {
            return new Lost(Loss.PROTOCOL, null, "not the protocol: " + why.getMessage(), why);
        }

        static Lost unexpected() {
            return new Lost(Loss.UNEXPECTED, null, "the daemon sent a frame that does not belong here", null);
        }

        /** The same, for another thread to throw: an exception is not shared. */
        Lost copy() {
            return new Lost(loss, code, getMessage(), getCause());
        }

        /** How it ended. */
        public Loss loss() {
            return loss;
        }

        /** The daemon's reason, if it said goodbye; otherwise null. */
        public Code code() {
            return code;
        }

        @Override
        public boolean mayPass() {
            return loss != Loss.PROTOCOL && loss != Loss.UNEXPECTED;
        }
    }
}
