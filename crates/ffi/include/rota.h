/*
 * A client of a Rota daemon: groups by name, and messages to them that all members get in one order.
 *
 * Calls. A function that can fail returns a rota_status, and leaves a text for people in rota_error_text().
 *
 * Memory. What the caller hands over, texts, payloads, options and envelopes, is the caller's, and is not
 * looked at any more when the function has returned. What the library hands out stays the library's for as
 * long as its function says; only a rota_client is freed, once, by rota_close or rota_free. Texts are UTF-8
 * and end with a zero. An argument that may be NULL says so; any other that is NULL is an error, not a crash.
 *
 * Threads. A handle is for one thread at a time, which may change; two at once are told ROTA_STATUS_BUSY.
 * rota_split makes two handles of one, so that one thread sends while another receives. No thread may use
 * a handle while or after another closes or frees it. In a child of fork() a handle is its parent's: nothing is
 * written or read there, and rota_free frees memory only. Connect anew.
 *
 * Signals. The library starts no threads, installs no handlers, and raises no SIGPIPE.
 */

#ifndef ROTA_H
#define ROTA_H

/* Made by `cargo xtask header` from crates/ffi/src. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Most destinations of one message.
#define ROTA_MAX_DESTINATIONS 100

// A flag of rota_send_envelope: leave it to a later call to write the message, together with others. It is
// written when there are 32 KiB of them, at the next message without this flag, rota_flush, join, leave or
// list, and before rota_receive waits.
#define ROTA_GATHER 1

// A flag of rota_send_envelope: do not wait for credit, say ROTA_STATUS_WOULD_BLOCK. Credit comes with the
// events, so receive some in between.
#define ROTA_NO_WAIT 2

// The two sides have no version of the protocol in common.
#define ROTA_CODE_VERSION 1

// Another client of this daemon has the name: take another, or none and have one invented.
#define ROTA_CODE_NAME_IN_USE 2

// The name is none.
#define ROTA_CODE_ILLEGAL_NAME 3

// The daemon has as many clients as it may: try another daemon, or later.
#define ROTA_CODE_TOO_MANY_CLIENTS 4

// Who asks may not.
#define ROTA_CODE_NOT_ALLOWED 5

// The daemon is being stopped: try another, or later.
#define ROTA_CODE_SHUTTING_DOWN 6

// Too much waited for this client: it has to take its events faster.
#define ROTA_CODE_TOO_SLOW 7

// What the client sent was not the protocol.
#define ROTA_CODE_PROTOCOL_ERROR 8

// The client sent more than its credit.
#define ROTA_CODE_CREDIT_EXCEEDED 9

// The daemon takes no more of these: its clients are in as many groups as they may.
#define ROTA_CODE_QUOTA 10

// A message is larger than the largest.
#define ROTA_CODE_TOO_LARGE 11

// The client did not say hello in time.
#define ROTA_CODE_TIMED_OUT 12

// The daemon cannot do it now, for a reason of its own: try later.
#define ROTA_CODE_UNAVAILABLE 13

// What came of a call. All but ROTA_STATUS_OK leave a text (rota_error_text).
typedef enum rota_status {
  // It is done.
  ROTA_STATUS_OK = 0,
  // An argument is NULL that must not be, or a number or a flag has no meaning.
  ROTA_STATUS_INVALID_ARGUMENT = 1,
  // A text is not the name of a group or a client.
  ROTA_STATUS_BAD_NAME = 2,
  // A message needs from 1 to ROTA_MAX_DESTINATIONS destinations.
  ROTA_STATUS_BAD_DESTINATIONS = 3,
  // The payload is larger than rota_largest_payload: split it.
  ROTA_STATUS_TOO_LARGE = 4,
  // There is no credit now, and the call was not to wait: receive some events first.
  ROTA_STATUS_WOULD_BLOCK = 5,
  // There was no event, or no answer, in time. A join or leave may still take effect, and may be made
  // again.
  ROTA_STATUS_TIMED_OUT = 6,
  // While the call waited, more events arrived than may lie unread: receive some, then call again. A
  // message was not sent; a join or leave may still take effect.
  ROTA_STATUS_UNREAD = 7,
  // The daemon does not take this client; rota_error_code says why.
  ROTA_STATUS_REFUSED = 8,
  // The daemon would not join or leave; nothing has changed; rota_error_code says why.
  ROTA_STATUS_FAILED = 9,
  // The connection has ended, and stays so; rota_error_code says why if the daemon did.
  ROTA_STATUS_LOST = 10,
  // There is no connection: nobody listens there, or may not be reached.
  ROTA_STATUS_NO_CONNECTION = 11,
  // The address is not on this machine, and TCP protects nothing: use a Unix socket, or say insecure.
  ROTA_STATUS_INSECURE = 12,
  // The daemon speaks another version.
  ROTA_STATUS_VERSION = 13,
  // Another thread is in a call with this handle.
  ROTA_STATUS_BUSY = 14,
  // The handle is the other half: the sending one cannot receive, nor the receiving one send.
  ROTA_STATUS_WRONG_HALF = 15,
  // The library has failed, which is a bug of it: nothing but rota_free can be done with the handle.
  ROTA_STATUS_BUG = 16,
  // One side does not take the other's certificate, or there is no TLS: the text says which. Nothing but
  // another certificate helps.
  ROTA_STATUS_TLS = 17,
  // A file with certificates or a key cannot be read, or has none.
  ROTA_STATUS_BAD_FILE = 18,
} rota_status;

// What an event is.
typedef enum rota_event_type {
  // A message, once, however many of its destinations the client matches: `message`.
  ROTA_EVENT_TYPE_MESSAGE = 1,
  // A new view of a group that the client is in, with membership only, as the next two: `group`,
  // `view_id`, `view`.
  ROTA_EVENT_TYPE_VIEW = 2,
  // Until the next view of the group, delivery is only with respect to those who stay with this client's
  // daemon: `group`, and `view_id` of the view that ends.
  ROTA_EVENT_TYPE_TRANSITIONAL = 3,
  // The client has left the group, and gets nothing more of it: `group`. Without membership this comes only
  // if it has not asked to: the daemon's rules do not let it be there any more.
  ROTA_EVENT_TYPE_SELF_LEAVE = 4,
  // A warning: the client takes its events more slowly than they come: `waiting`, `limit`.
  ROTA_EVENT_TYPE_LAGGING = 5,
  // A message of this client, sent before, went to nobody: `group`, `kind`, `reason`.
  ROTA_EVENT_TYPE_NOT_SENT = 6,
  // The client has missed something, because it took its events too slowly: `skipped`. For everybody else
  // it has disconnected and joined its groups again, here in the order; with membership the views of that
  // follow.
  ROTA_EVENT_TYPE_SKIPPED = 7,
  // The client's daemon is in no view of the daemons: until the next event there are no messages and no views,
  // and what the client sends waits. Only where the daemons order in primary views alone.
  ROTA_EVENT_TYPE_EXCLUDED = 8,
  // The daemon is in a view again: `missed`. With membership a view of each group follows if it is true.
  ROTA_EVENT_TYPE_INCLUDED = 9,
  // The connection was lost, and there is a new one: `gap`. Of rota_connect_lasting only. All that was ordered between the
  // last event and the joins of the new connection is missing: messages and views. With membership the first view of each
  // group has its members now; the program has to ask them for all that they have agreed on meanwhile.
  ROTA_EVENT_TYPE_RECONNECTED = 10,
} rota_event_type;

// Why there is a new view.
typedef enum rota_cause {
  // A client joined.
  ROTA_CAUSE_JOIN = 1,
  // A client left.
  ROTA_CAUSE_LEAVE = 2,
  // A client is not connected any more.
  ROTA_CAUSE_DISCONNECT = 3,
  // Daemons have come or gone.
  ROTA_CAUSE_NETWORK = 4,
} rota_cause;

// Which guarantee a message asks for.
typedef enum rota_service {
  // Delivered once, on receipt, in no particular order.
  ROTA_SERVICE_RELIABLE = 1,
  // In the order of its sender.
  ROTA_SERVICE_FIFO = 2,
  // Served as agreed.
  ROTA_SERVICE_CAUSAL = 3,
  // In the one order.
  ROTA_SERVICE_AGREED = 4,
  // In the one order, once every daemon is known to have it.
  ROTA_SERVICE_SAFE = 5,
} rota_service;

// What becomes of a client that takes its events too slowly, as far as its daemon allows it.
typedef enum rota_when_slow {
  // What the daemon does with all who do not say.
  ROTA_WHEN_SLOW_DEFAULT = 0,
  // It is disconnected.
  ROTA_WHEN_SLOW_DISCONNECT = 1,
  // What waits is dropped, and the client is told how much that was: ROTA_EVENT_TYPE_SKIPPED. For everybody
  // else it has disconnected and joined its groups again.
  ROTA_WHEN_SLOW_SKIP = 2,
  // Those who send to its groups are made to wait for it, for a time; then it is disconnected.
  ROTA_WHEN_SLOW_THROTTLE_THEN_DISCONNECT = 3,
  // The same; then what waits is dropped, as with Skip.
  ROTA_WHEN_SLOW_THROTTLE_THEN_SKIP = 4,
} rota_when_slow;

// A connection to a daemon, or one half of it.
typedef struct rota_client rota_client;

// How a client and a daemon at a tls: address know each other: files with certificates, as PEM. They are
// read by rota_connect. A field that is NULL means its default.
typedef struct rota_tls {
  // The roots that the daemon's certificate has to come from; not NULL.
  const char *ca;
  // The certificate that the client shows, and those between it and its root; NULL if it shows none, as
  // only some daemons take it.
  const char *certificate;
  // Its private key; NULL without certificate.
  const char *key;
  // The name that the daemon's certificate has to be for; the host of the address.
  const char *server_name;
} rota_tls;

// What a client can be told before it connects. A field that is 0 or NULL means its default, so
// `rota_options options = {0};` is a good start.
typedef struct rota_options {
  // What the client wants to be called at its daemon: 1 to 10 characters from '$' to '~', unique among
  // the clients of that daemon. NULL has the daemon invent a name.
  const char *name;
  // Whether the client gets views, transitional signals and self-leaves.
  bool membership;
  // Whether TCP may leave this machine, where everybody on the way can read and change everything.
  bool insecure;
  // Which guarantee messages ask for whose envelope does not say: one of rota_service; agreed.
  uint32_t service;
  // How long the daemon may take to let the client in, and to answer a request; 30 s.
  uint64_t timeout_ms;
  // About how many bytes of events may lie unread while a call waits for credit or an answer; 16 MiB.
  size_t unread_bytes;
  // What becomes of the client if it takes its events too slowly: one of rota_when_slow.
  uint32_t when_slow;
  // For an address tls:HOST:PORT how the two sides know each other; NULL for all others.
  const struct rota_tls *tls;
} rota_options;

// The pauses between attempts to connect again: each is twice the one before, with a part drawn at random. A field that is 0
// means its default.
typedef struct rota_pauses {
  // Between the loss and the first attempt; 50 ms.
  uint64_t first_ms;
  // The longest; 5 s.
  uint64_t longest_ms;
} rota_pauses;

// A group that the daemon knows of.
typedef struct rota_group {
  // What it is called.
  const char *name;
  // How many members it has.
  uint32_t members;
} rota_group;

// A message.
typedef struct rota_message {
  // The private name of who sent it; not necessarily a member of anything.
  const char *sender;
  // All the destinations that it was sent to.
  const char *const *to;
  // How many.
  size_t to_count;
  // The application's bytes. Not NULL, also if there are none.
  const void *payload;
  // How many.
  size_t bytes;
  // The guarantee it was sent with: one of rota_service.
  uint32_t service;
  // The application's number for this kind of message.
  uint16_t kind;
  // Its sender did not want it back.
  bool self_discard;
} rota_message;

// Who is in a group from here on.
typedef struct rota_view {
  // Private names, in an order that is the same for all members.
  const char *const *members;
  // How many.
  size_t member_count;
  // Where in `members` the receiver is.
  size_t own;
  // Why there is a new view.
  enum rota_cause cause;
  // The private name of who joined, left or disconnected; NULL if the cause is the network.
  const char *changed;
  // If the cause is the network: for each member the number of its set. Members of one set had the same
  // view before this one, and have got the same messages in it. Otherwise NULL.
  const uint32_t *sets;
  // How many sets there are.
  size_t set_count;
} rota_view;

// What a client has missed.
typedef struct rota_skipped {
  // So many messages.
  uint64_t messages;
  // Bytes of their payloads.
  uint64_t bytes;
  // Those of the client's groups that they went to, ascending.
  const char *const *groups;
  // How many.
  size_t group_count;
} rota_skipped;

// What may be missing between an old connection and a new one.
typedef struct rota_gap {
  // How the earlier connection ended, for people.
  const char *lost;
  // The daemon's reason, one of ROTA_CODE_; 0 if it gave none.
  uint16_t code;
  // Milliseconds from the discovery of the loss until all joins were done.
  uint64_t duration_ms;
  // Bytes of messages, with their frames, that this client had sent and that the daemon had not said to have taken. Each of
  // these messages was ordered or not, and so was each that the daemon had taken and that had no place in the order when it
  // died; none is sent again.
  uint64_t unsettled_bytes;
  // The private name of the client now.
  const char *name;
  // Groups that the daemon does not let it join again.
  const char *const *not_joined;
  // How many.
  size_t not_joined_count;
} rota_gap;

// What a client is told. What does not belong to the type is NULL or 0.
typedef struct rota_event {
  // What it is.
  enum rota_event_type event_type;
  // Of a message.
  const struct rota_message *message;
  // Of a view.
  const struct rota_view *view;
  // Of a view, a transitional signal, a self-leave. Of a message that was not sent, the first of its
  // destinations that it may not go to.
  const char *group;
  // Of a view or a transitional signal: equal texts are equal views.
  const char *view_id;
  // Bytes that waited for the client at the daemon.
  uint64_t waiting;
  // At so many the daemon does what rota_when_slow says.
  uint64_t limit;
  // Why a message was not sent, for people.
  const char *reason;
  // The application's number for the kind of message that was not sent.
  uint16_t kind;
  // What was missed.
  const struct rota_skipped *skipped;
  // What was delivered while the daemon was excluded is missing; otherwise everything goes on where it stopped.
  bool missed;
  // What may be missing behind a lost connection.
  const struct rota_gap *gap;
} rota_event;

// Where a message goes, and how.
typedef struct rota_envelope {
  // Groups, and clients by their private names #client#daemon. A receiver that is in several gets the
  // message once.
  const char *const *to;
  // How many, from 1 to ROTA_MAX_DESTINATIONS.
  size_t to_count;
  // One of rota_service; 0 is the client's.
  uint32_t service;
  // The application's number for this kind of message.
  uint16_t kind;
  // This client does not want the message back.
  bool self_discard;
} rota_envelope;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Connects, and waits until the daemon has let the client in. The address is the path of a Unix socket,
// tcp:HOST:PORT, or, with tls in the options, tls:HOST:PORT. With options NULL all are defaults. *client is
// the caller's, to close or to free; it is NULL after an error.
enum rota_status rota_connect(const char *address,
                              const struct rota_options *options,
                              struct rota_client **client);

// As rota_connect, for a client that connects again when its connection is lost, joins its groups again, and says so:
// ROTA_EVENT_TYPE_RECONNECTED stands where something may be missing. A failure of the first attempt is final. With pauses
// NULL they are the defaults.
//
// It connects again while rota_receive waits, and nowhere else, so that nothing is sent or received behind a gap that the
// program has not seen: when another function says ROTA_STATUS_LOST, receive until that event. An attempt that has begun may
// take longer than the time-out of rota_receive. If an attempt fails and the next would too, as without a right certificate,
// rota_receive says why, and tries once more when it is called again. A daemon may take a while to notice that the old
// connection is gone; a client with a name of its own is refused as long.
//
// It has no descriptor to wait for (rota_fd is -1), and cannot be split.
enum rota_status rota_connect_lasting(const char *address,
                                      const struct rota_options *options,
                                      const struct rota_pauses *pauses,
                                      struct rota_client **client);

// Takes the receiving half out of a client, so that one thread sends while another receives. The client is
// the sending half from then on. While a call of it waits for credit or an answer, the other thread has to
// receive. When the receiving half is freed, the connection ends.
enum rota_status rota_split(struct rota_client *client,
                            struct rota_client **receiver);

// Says bye, waits until the daemon has read all that was sent, and frees the client, also after an error:
// then the daemon may not have read everything. A sending half does not wait: the receiving half goes on
// to the end. A receiving half is freed. NULL is fine.
enum rota_status rota_close(struct rota_client *client);

// Hangs up and frees the client: what the daemon has not read by then may be lost. NULL is fine.
void rota_free(struct rota_client *client);

// What others call this client: #client#daemon. Valid as long as the handle; NULL for NULL. Of a client that connects again
// and has no name of its own, what its first connection was called: ROTA_EVENT_TYPE_RECONNECTED says the next.
const char *rota_name(const struct rota_client *client);

// The most bytes of one payload; 0 for NULL.
size_t rota_largest_payload(const struct rota_client *client);

// The descriptor to wait for with poll(), and for nothing else: POLLIN, and POLLOUT while
// rota_wants_write. Events that have been read already do not make it ready, so receive with a time-out of
// 0 until there are none before each poll(). -1 for NULL, and for a client that connects again.
int rota_fd(const struct rota_client *client);

// Whether there is something to write that the socket has not taken yet; rota_receive writes it when there
// is room. False for halves: what a sending half has gathered, or could not write with ROTA_NO_WAIT, its
// next call writes.
bool rota_wants_write(const struct rota_client *client);

// All groups that the daemon knows of. *groups has *count of them, which are the library's: valid until the
// next list with this handle, and until the handle is closed or freed.
enum rota_status rota_groups(struct rota_client *client,
                             const struct rota_group **groups,
                             size_t *count);

// The private names of the members of a group as far as the daemon knows, in the order of views; none if
// there is no such group. The client need not be in it. *members has *count of them, which are the
// library's: valid until the next list with this handle, and until the handle is closed or freed.
enum rota_status rota_members(struct rota_client *client,
                              const char *group,
                              const char *const **members,
                              size_t *count);

// The next event. Waits so many milliseconds at most, and says ROTA_STATUS_TIMED_OUT then; 0 does not
// wait, a negative number waits for ever. A signal does not end the wait. When the connection has ended,
// the events that arrived before come first.
//
// *event and all that it points to are the library's: valid until the next rota_receive with this handle,
// and until the handle is closed or freed. *event is NULL if there is none.
enum rota_status rota_receive(struct rota_client *client,
                              int64_t timeout_ms,
                              const struct rota_event **event);

// Sends a message to a group, or to one client by its private name. Waits while there is no credit: until
// the daemon has taken enough of what this client sent before. That a message has its place in the order,
// only its own copy shows. The client does not have to be in the group.
enum rota_status rota_send(struct rota_client *client,
                           const char *to,
                           const void *payload,
                           size_t bytes);

// As rota_send, for all that an envelope can say. Flags are ROTA_GATHER, ROTA_NO_WAIT, both or 0.
enum rota_status rota_send_envelope(struct rota_client *client,
                                    const struct rota_envelope *envelope,
                                    const void *payload,
                                    size_t bytes,
                                    uint32_t flags);

// Writes all that was gathered.
enum rota_status rota_flush(struct rota_client *client);

// Joins a group, and waits until that has taken effect in the order. With membership, the view is among the
// events. A group that the client is in already is fine.
enum rota_status rota_join(struct rota_client *client,
                           const char *group);

// Leaves a group, and waits until that has taken effect in the order: messages of the group that were
// ordered before are still among the events. A group that the client is not in is fine.
enum rota_status rota_leave(struct rota_client *client,
                            const char *group);

// Why the last call of this thread that failed did so, for people. Never NULL; valid until the next call
// of this thread that fails.
const char *rota_error_text(void);

// The daemon's reason for what rota_error_text says, one of ROTA_CODE_; 0 if the daemon gave none. Later
// daemons may give others.
uint16_t rota_error_code(void);

// The version of this library.
const char *rota_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ROTA_H */
/* cbindgen 0.29.4, 71dca333c6b29d1d */
