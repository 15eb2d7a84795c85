package rota;

import java.nio.charset.StandardCharsets;

/** Names of groups, clients and daemons. */
final class Names {
    static final int MOST_GROUP = 31;
    static final int MOST_CLIENT = 10;
    static final int MOST_DAEMON = 19;
    static final int MOST_DESTINATIONS = 100;

    private Names() {}

    /** Why a text is no name of at most so many characters; null if it is one. */
    static String wrong(String text, int most) {
        if (text.isEmpty()) {
            return "a name has at least one character";
        }
        if (text.length() > most) {
            return "the name may have at most " + most + " characters";
        }
        boolean legal = text.chars().allMatch(character -> character >= '$' && character <= '~');
        return legal ? null : "names consist of characters from '$' to '~'";
    }

    static String wrongGroup(String text) {
        return wrong(text, MOST_GROUP);
    }

    static String wrongPrivate(String text) {
        int middle = text.indexOf('#', 1);
        if (!text.startsWith("#") || middle < 0) {
            return "the name of a client is written #client#daemon";
        }
        String client = wrong(text.substring(1, middle), MOST_CLIENT);
        return client != null ? client : wrong(text.substring(middle + 1), MOST_DAEMON);
    }

    static String wrongDestination(String text) {
        return text.startsWith("#") ? wrongPrivate(text) : wrongGroup(text);
    }

    static void check(String text, String wrong) throws RotaException.Invalid {
        if (wrong != null) {
            throw new RotaException.Invalid("\"" + text + "\" is not a name: " + wrong);
        }
    }

    /** The bytes of a name. */
    static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.US_ASCII);
    }
}
