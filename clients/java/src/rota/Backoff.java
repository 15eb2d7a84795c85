package rota;

import java.time.Duration;

/**
 * The pauses between attempts: each is twice the one before, with a part drawn at random, so that the clients of a daemon that
 * was restarted do not all come at once.
 *
 * @param first the pause between the loss and the first attempt
 * @param longest the longest pause
 */
public record Backoff(Duration first, Duration longest) {
    /** From 50 ms to 5 s. */
    public static final Backoff DEFAULT = new Backoff(Duration.ofMillis(50), Duration.ofSeconds(5));

    /** The pause after so many attempts, in nanoseconds: from half of the time to all of it, as chance from 0 to 1 says. */
    long pause(int attempts, double chance) {
        long whole = Options.nanos(first);
        long most = Options.nanos(longest);
        for (; attempts > 0 && whole < most; attempts--) {
            whole *= 2;
        }
        whole = Math.min(whole, most);
        return whole / 2 + (long) (chance * (whole / 2));
    }
}
