/**
 * A client of a Rota daemon: groups by name, and messages to them that all members get in one order.
 *
 * <pre>{@code
 * try (Client client = new Options().name("alice").membership(true).connect("/run/rota/rota.sock")) {
 *     client.join("orders");
 *     client.send("orders", "hello".getBytes(UTF_8));
 *     while (true) {
 *         Event event = client.receive();
 *         if (event instanceof Event.Message message) {
 *             System.out.println(message.sender() + ": " + new String(message.payload(), UTF_8));
 *         } else if (event instanceof Event.View view) {
 *             System.out.println(view.group() + " " + view.members());
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>A {@link rota.Client} is one connection, and its loss is final. A {@link rota.Reconnecting} connects again and says
 * what may be missing. Any number of threads may use either. The bytes are those of {@code docs/protocols/client.md}, without
 * memory for what the client is told: what a daemon says comes through the socket.
 */
package rota;
