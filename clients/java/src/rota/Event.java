package rota;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The next thing in a client's stream. Later versions may have others. */
public interface Event {
    /**
     * A message, once, however many of its destinations the client matches.
     *
     * @param sender the private name of the sender, which need not be a member of any group
     * @param service the guarantee it was sent with
     * @param selfDiscard its sender did not want it back
     * @param kind the application's number for this kind of message
     * @param to all the destinations that it was sent to
     * @param payload the application's bytes: nothing else has this array
     */
    record Message(String sender, Service service, boolean selfDiscard, int kind, List<String> to, byte[] payload)
            implements Event {}

    /**
     * The members of a group from here on. For clients with membership only, as the next two.
     *
     * @param group the group
     * @param id names the view
     * @param cause why there is a new view
     * @param changed the private name of who joined, left or disconnected; null if the cause is the network
     * @param members private names, in an order that is the same for all of them
     * @param sets for views by the network: indices of members by who came together. Two of one set had the same view before,
     *     and have got the same messages in it. Each member is in one set.
     * @param own the index of the receiver in {@code members}
     */
    record View(
            String group, ViewId id, Cause cause, String changed, List<String> members, List<List<Integer>> sets, int own)
            implements Event {
        /** The receiver itself. */
        public String me() {
            return members.get(own);
        }

        /**
         * The members that came here from the receiver's last view with the same messages in it, the receiver included. After a
         * join these are the members from before, or the receiver alone if it is the one that joined.
         */
        public List<String> cameWithMe() {
            if (cause == Cause.NETWORK) {
                List<Integer> mine = sets.stream().filter(set -> set.contains(own)).findFirst().orElse(List.of());
                return mine.stream().map(members::get).toList();
            }
            if (cause != Cause.JOIN) {
                return members;
            }
            if (me().equals(changed)) {
                return List.of(me());
            }
            List<String> names = new ArrayList<>(members);
            names.remove(changed);
            return List.copyOf(names);
        }
    }

    /**
     * Until the next view of the group, delivery is only with respect to those who stay with this client's daemon.
     *
     * @param group the group
     * @param view the view that ends
     */
    record Transitional(String group, ViewId view) implements Event {}

    /**
     * The client has left the group. Without membership this comes only if the client has not asked to: the daemon's rules do
     * not let it be there any more.
     */
    record SelfLeave(String group) implements Event {}

    /**
     * A warning: the client takes its events more slowly than they come.
     *
     * @param waiting bytes that waited for it at the daemon
     * @param limit the bytes at which the daemon closes the connection, or skips
     */
    record Lagging(long waiting, long limit) implements Event {}

    /**
     * The daemon sent a message of this client, from before, to nobody.
     *
     * @param kind the number that the message was given
     * @param to the first of its destinations that it may not go to
     * @param code why
     * @param text why, for people
     */
    record NotSent(int kind, String to, Code code, String text) implements Event {}

    /**
     * The client has missed something, because it took its events too slowly. For everybody else it has disconnected and joined
     * its groups again, here in the order; with membership the views of that follow. The application has to ask the members for
     * all that they have agreed on meanwhile.
     *
     * @param messages how many are missing
     * @param bytes those of their payloads
     * @param groups those of the client's groups that they went to, ascending
     */
    record Skipped(long messages, long bytes, List<String> groups) implements Event {}

    /**
     * The client's daemon is in no view of the daemons: until {@link Included} there are no messages and no views, and what the
     * client sends waits.
     */
    record Excluded() implements Event {}

    /**
     * The daemon is in a view again.
     *
     * @param missed deliveries of that time are missing, perhaps own messages too: others have got them. With membership a view
     *     of each group follows. Otherwise everything goes on where it stopped.
     */
    record Included(boolean missed) implements Event {}

    /**
     * The connection was lost and there is a new one, of a {@link Reconnecting} only. All that was ordered between the last
     * event and the joins of the new connection is missing: messages and views. With membership the first view of each group has
     * its members now; the application has to ask them for all that they have agreed on meanwhile.
     *
     * @param lost the end of the earlier connection
     * @param duration the time from the discovery of the loss until all joins were done
     * @param unsettledBytes those of messages, with their frames, that this client had sent and that the daemon had not said to
     *     have taken. It is not known of any of these messages whether it was ordered, nor of those that the daemon had taken and
     *     that had no place in the order when it died. None is sent again.
     * @param name the private name of the client now; a client without a name of its own got a new one
     * @param notJoined the groups that the daemon does not let the client join again, and why
     */
    record Reconnected(
            RotaException.Lost lost,
            Duration duration,
            long unsettledBytes,
            String name,
            Map<String, RotaException.Failed> notJoined)
            implements Event {}
}
