/* The load generator of the HTTP benchmarks: plain epoll, keep-alive, one thread, so
 * that it takes as little CPU from the server as it can. It prints one JSON object.
 *
 *   load MODE --port P [--name value ...]
 *
 * MODE: cycle    connections that enqueue, lease and ack batches in turn
 *       single   the same with one job a request, on many connections
 *       latency  an open loop of enqueues at a rate, and long polls that wait for them
 *       polls    many long polls on an empty queue, dropped and opened again at once
 *       slow     a reader that never reads, and a body that never ends
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The API: everything of it that is used stands here. */
#define ENQUEUE_PATH "/v1/queues/%s/jobs"
#define LEASE_PATH "/v1/lease"
#define ACK_PATH "/v1/ack"
#define JOB_BODY "{\"payload\":\"%s\"}"
#define LEASE_BODY \
  "{\"queues\":[\"%s\"],\"max\":%d,\"wait\":%s,\"lease\":\"%s\",\"worker\":\"w\"}"
#define ACK_BEGIN "{\"tokens\":["
#define ACK_END "]}"
#define TOKEN_NAME "\"token\":"
#define STAMP_MARK "sent@" /* before the moment of sending, in a payload */
#define ENQUEUED 201
#define LEASED 200
#define ACKED 200

enum kind { ENQUEUE, LEASE, ACK, KINDS };
static const char *const kind_names[KINDS] = {"enqueue", "lease", "ack"};

/* A connection is CLOSED, CONNECTING, BUSY with a request, or IDLE. */
enum state { CLOSED, CONNECTING, BUSY, IDLE };

struct bytes {
  char *data;
  size_t length, room;
};

struct connection {
  int fd;
  enum state state;
  enum kind kind;
  bool is_reading, is_deaf, is_endless;
  const struct bytes *request; /* a prepared one, or `own` */
  struct bytes own, answer;
  size_t sent;
  int64_t sent_ns;
  int jobs; /* that the running request carries */
};

struct samples {
  float *ms;
  size_t count, room;
};

static struct options {
  const char *mode, *host, *queue, *token, *wait, *lease;
  int port, connections, batch, payload, pollers, drops;
  double seconds, warmup, rate, every;
  long jobs;
} options = {.host = "127.0.0.1",
             .queue = "bench",
             .token = "",
             .wait = "1s",
             .lease = "30s",
             .payload = 200,
             .seconds = 5,
             .rate = 1000,
             .every = 5,
             .pollers = 64};

static struct {
  long enqueued, leased, acked, requests, errors, connects, refused, unstamped;
  char first_error[160];
  int64_t began_ns;
  double cpu_s;
} total;

static int poller;
static struct connection *connections;
static int connections_count;
static struct bytes enqueue_request, lease_request;
static struct samples latency[KINDS], every_request, starts, delays;
static char body_of_job[1 << 16];

static void die(const char *what) {
  perror(what);
  exit(2);
}

static int64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6 + used.ru_stime.tv_sec +
         used.ru_stime.tv_usec / 1e6;
}

static void grow(struct bytes *to, size_t more) {
  if (to->length + more <= to->room) return;
  to->room = (to->length + more) * 2;
  to->data = realloc(to->data, to->room);
  if (!to->data) die("memory");
}

static void add(struct bytes *to, const void *data, size_t length) {
  grow(to, length);
  memcpy(to->data + to->length, data, length);
  to->length += length;
}

static void add_text(struct bytes *to, const char *text) {
  add(to, text, strlen(text));
}

static void sample(struct samples *into, double ms) {
  if (into->count == into->room) {
    into->room = into->room ? into->room * 2 : 4096;
    into->ms = realloc(into->ms, into->room * sizeof *into->ms);
    if (!into->ms) die("memory");
  }
  into->ms[into->count++] = (float)ms;
}

/* ---- requests ---- */

static void head(struct bytes *to, const char *path, const char *framing) {
  char text[1024];
  to->length = 0;
  snprintf(text, sizeof text,
           "POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
           "%s%s%s%s\r\n",
           path, options.host, options.port, *options.token ? "Authorization: Bearer " : "",
           options.token, *options.token ? "\r\n" : "", framing);
  add_text(to, text);
}

static void head_with_length(struct bytes *to, const char *path, size_t length) {
  char framing[64];
  snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", length);
  head(to, path, framing);
}

/* A job whose payload begins with `stamp` and is filled up to its size. */
static const char *job_body(const char *stamp) {
  char payload[(1 << 16) - 64];
  int room = (int)sizeof payload - 1;
  int size = options.payload < room ? options.payload : room;
  memset(payload, 'x', size);
  size_t begin = strlen(stamp);
  memcpy(payload, stamp, begin < (size_t)size ? begin : (size_t)size);
  payload[size] = 0;
  snprintf(body_of_job, sizeof body_of_job, JOB_BODY, payload);
  return body_of_job;
}

static void write_enqueue(struct bytes *to, int jobs, const char *stamp) {
  char path[256];
  const char *job = job_body(stamp);
  size_t length = strlen(job);
  snprintf(path, sizeof path, ENQUEUE_PATH, options.queue);
  head_with_length(to, path, 2 + jobs * length + (jobs - 1));
  add_text(to, "[");
  for (int n = 0; n < jobs; n++) {
    if (n) add_text(to, ",");
    add(to, job, length);
  }
  add_text(to, "]");
}

static void write_lease(struct bytes *to, int max) {
  char body[512], wait[32];
  bool is_bare = !strcmp(options.wait, "0"); /* durations are strings, zero is 0 */
  snprintf(wait, sizeof wait, is_bare ? "%s" : "\"%s\"", options.wait);
  snprintf(body, sizeof body, LEASE_BODY, options.queue, max, wait, options.lease);
  head_with_length(to, LEASE_PATH, strlen(body));
  add_text(to, body);
}

/* The tokens of an answer as the body of an ack: answers how many there are. */
static int write_ack(struct bytes *to, const char *body, size_t length) {
  static struct bytes acked;
  const char *at = body, *end = body + length;
  int jobs = 0;
  acked.length = 0;
  add_text(&acked, ACK_BEGIN);
  while ((at = memmem(at, end - at, TOKEN_NAME, strlen(TOKEN_NAME)))) {
    at += strlen(TOKEN_NAME);
    while (at < end && *at == ' ') at++;
    const char *stop = at;
    if (stop < end && *stop == '"') {
      stop = memchr(stop + 1, '"', end - stop - 1);
      if (!stop) break;
      stop++;
    } else {
      while (stop < end && *stop != ',' && *stop != '}') stop++;
    }
    if (jobs++) add_text(&acked, ",");
    add(&acked, at, stop - at);
    at = stop;
  }
  add_text(&acked, ACK_END);
  head_with_length(to, ACK_PATH, acked.length);
  add(to, acked.data, acked.length);
  return jobs;
}

/* ---- connections ---- */

static void watch(struct connection *c, uint32_t events, int how) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  if (epoll_ctl(poller, how, c->fd, &event)) die("epoll_ctl");
}

static void fail(const char *what, const char *more, size_t length) {
  if (!total.errors++)
    snprintf(total.first_error, sizeof total.first_error, "%s: %.*s", what,
             (int)(length < 100 ? length : 100), more);
}

static void shut(struct connection *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  c->state = CLOSED;
}

static int dial(int receive_bytes) {
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(options.port)};
  if (inet_pton(AF_INET, options.host, &to.sin_addr) != 1) die("host");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (receive_bytes)
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) {
    close(fd);
    return -1;
  }
  return fd;
}

/* Opens the connection; its request goes out as soon as it is there. */
static void open_connection(struct connection *c, int receive_bytes) {
  c->answer.length = 0;
  c->fd = dial(receive_bytes);
  if (c->fd < 0) {
    total.refused++;
    c->state = CLOSED;
    return;
  }
  total.connects++;
  c->state = CONNECTING;
  watch(c, EPOLLOUT, EPOLL_CTL_ADD);
}

static void push(struct connection *c) {
  while (c->sent < c->request->length) {
    ssize_t n = send(c->fd, c->request->data + c->sent, c->request->length - c->sent,
                     MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      watch(c, c->is_deaf ? EPOLLOUT : EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      c->is_reading = false;
      return;
    }
    if (n < 0) return; /* the reading side will find it closed */
    c->sent += n;
  }
  if (!c->is_reading) watch(c, c->is_deaf ? 0 : EPOLLIN, EPOLL_CTL_MOD);
  c->is_reading = true;
}

static void start(struct connection *c, enum kind kind, const struct bytes *request,
                  int jobs) {
  c->kind = kind;
  c->request = request;
  c->jobs = jobs;
  c->sent = 0;
  c->sent_ns = now_ns();
  c->answer.length = 0;
  if (c->state == CLOSED) {
    open_connection(c, 0);
  } else {
    c->state = BUSY;
    push(c);
  }
}

static void start_ack(struct connection *c, const char *body, size_t length) {
  static struct bytes built;
  int jobs = write_ack(&built, body, length);
  c->own.length = 0;
  add(&c->own, built.data, built.length);
  start(c, ACK, &c->own, jobs);
}

/* ---- answers ---- */

struct answer {
  int status;
  char *body;
  size_t length;
};

static const char *header(const char *data, size_t length, const char *name) {
  size_t size = strlen(name);
  for (const char *at = data, *end = data + length; at + size < end;) {
    if (!strncasecmp(at, name, size)) return at + size;
    at = memchr(at, '\n', end - at);
    if (!at) break;
    at++;
  }
  return NULL;
}

/* Joins the chunks in place; answers -1 while the last one is not there. */
static ssize_t unchunk(char *body, size_t length) {
  char *at = body, *end = body + length, *to = body;
  for (;;) {
    char *line = memmem(at, end - at, "\r\n", 2);
    if (!line) return -1;
    size_t size = strtoul(at, NULL, 16);
    at = line + 2;
    if ((size_t)(end - at) < size + 2) return -1;
    if (!size) return to - body;
    memmove(to, at, size);
    to += size;
    at += size + 2;
  }
}

static bool has_all_chunks(const char *body, size_t length) {
  return length >= 5 && !memcmp(body + length - 5, "0\r\n\r\n", 5);
}

/* Whether the whole answer is there. */
static bool parse(struct bytes *in, struct answer *out) {
  char *end = memmem(in->data, in->length, "\r\n\r\n", 4);
  if (!end) return false;
  size_t head_length = end + 2 - in->data;
  out->status = in->length > 12 ? atoi(in->data + 9) : 0;
  out->body = end + 4;
  out->length = in->length - (out->body - in->data);
  const char *length = header(in->data, head_length, "content-length:");
  if (length) {
    size_t wanted = strtoul(length, NULL, 10);
    if (out->length < wanted) return false;
    out->length = wanted;
    return true;
  }
  if (!header(in->data, head_length, "transfer-encoding:")) {
    out->length = 0; /* neither length nor chunks: 204 and the like */
    return true;
  }
  if (!has_all_chunks(out->body, out->length)) return false;
  ssize_t joined = unchunk(out->body, out->length);
  if (joined < 0) return false;
  out->length = joined;
  return true;
}

static void on_answer(struct connection *c, struct answer *answer);
static void on_lost(struct connection *c);

static void count_answer(struct connection *c, const struct answer *answer) {
  static const int expected[KINDS] = {ENQUEUED, LEASED, ACKED};
  double ms = (now_ns() - c->sent_ns) / 1e6;
  total.requests++;
  if (c->is_endless) return; /* any answer is a good one */
  if (answer->status != expected[c->kind]) {
    char what[64];
    snprintf(what, sizeof what, "%s answered %d", kind_names[c->kind], answer->status);
    fail(what, answer->body, answer->length);
    return;
  }
  sample(&latency[c->kind], ms);
  sample(&every_request, ms);
  if (c->kind == ENQUEUE) total.enqueued += c->jobs;
  if (c->kind == ACK) total.acked += c->jobs;
}

static void pull(struct connection *c) {
  for (;;) {
    grow(&c->answer, 2048);
    ssize_t n = recv(c->fd, c->answer.data + c->answer.length,
                     c->answer.room - c->answer.length, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      shut(c);
      on_lost(c);
      return;
    }
    c->answer.length += n;
    struct answer answer;
    if (c->state == BUSY && parse(&c->answer, &answer)) {
      bool is_last = header(c->answer.data, answer.body - c->answer.data,
                            "connection: close");
      count_answer(c, &answer);
      c->state = IDLE;
      if (is_last) shut(c);
      on_answer(c, &answer);
      return;
    }
  }
}

static void on_event(struct connection *c, uint32_t events) {
  if (c->state == CONNECTING) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
      total.refused++;
      shut(c);
      on_lost(c);
      return;
    }
    c->state = BUSY;
    c->is_reading = false;
    push(c);
    return;
  }
  if (events & EPOLLOUT) push(c);
  if (c->is_deaf && events & (EPOLLHUP | EPOLLERR)) {
    shut(c);
    on_lost(c);
  } else if (!c->is_deaf && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    pull(c);
  }
}

/* ---- cycles: enqueue, lease, ack, and again ---- */

static long promised; /* jobs that were sent, or are about to be */
static bool is_cycling;

static bool may_enqueue(void) { return !options.jobs || promised < options.jobs; }

static void next_in_cycle(struct connection *c, enum kind last, int leased) {
  if (last == LEASE && leased) return;
  if (last == ENQUEUE || !may_enqueue()) {
    if (last == LEASE) return; /* nothing to send, and nothing there: it is done */
    start(c, LEASE, &lease_request, 0);
    return;
  }
  promised += options.batch;
  start(c, ENQUEUE, &enqueue_request, options.batch);
}

static void on_cycle_answer(struct connection *c, struct answer *answer) {
  int leased = 0;
  enum kind last = c->kind;
  if (last == LEASE && answer->status == LEASED) {
    bool has_any = memmem(answer->body, answer->length, TOKEN_NAME, strlen(TOKEN_NAME));
    if (has_any) {
      start_ack(c, answer->body, answer->length);
      leased = c->jobs;
      total.leased += leased;
    }
  }
  if (last == ENQUEUE && answer->status != ENQUEUED) promised -= c->jobs;
  next_in_cycle(c, last, leased);
}

/* ---- latency: an open loop ---- */

static int64_t next_ns, step_ns;
static int senders, senders_room;

static void send_one(void) {
  char stamp[64];
  struct connection *free_one = NULL;
  for (int n = options.pollers; n < options.pollers + senders && !free_one; n++)
    if (connections[n].state == IDLE || connections[n].state == CLOSED)
      free_one = &connections[n];
  if (!free_one) { /* never wait for a connection: that would hide the server's delay */
    if (senders == senders_room) return;
    free_one = &connections[options.pollers + senders++];
  }
  snprintf(stamp, sizeof stamp, STAMP_MARK "%020lld;", (long long)now_ns());
  write_enqueue(&free_one->own, 1, stamp);
  sample(&delays, (now_ns() - next_ns) / 1e6);
  start(free_one, ENQUEUE, &free_one->own, 1);
  next_ns += step_ns;
}

static void measure_starts(const struct answer *answer) {
  const char *at = answer->body, *end = answer->body + answer->length;
  int64_t now = now_ns();
  int seen = 0, tokens = 0;
  while ((at = memmem(at, end - at, STAMP_MARK, strlen(STAMP_MARK)))) {
    at += strlen(STAMP_MARK);
    sample(&starts, (now - strtoll(at, NULL, 10)) / 1e6);
    seen++;
  }
  for (at = answer->body; (at = memmem(at, end - at, TOKEN_NAME, strlen(TOKEN_NAME)));
       at += strlen(TOKEN_NAME))
    tokens++;
  total.leased += tokens;
  total.unstamped += tokens - seen;
}

static void on_latency_answer(struct connection *c, struct answer *answer) {
  if (c->kind == ENQUEUE) return; /* idle until the next is due */
  if (c->kind == LEASE && answer->status == LEASED) {
    measure_starts(answer);
    if (memmem(answer->body, answer->length, TOKEN_NAME, strlen(TOKEN_NAME))) {
      start_ack(c, answer->body, answer->length);
      return;
    }
  }
  start(c, LEASE, &lease_request, 0);
}

/* ---- slow: a reader that never reads, a body that never ends ---- */

static struct {
  long filled, body_bytes, cut;
} slow;

#define SLOW_JOBS 1200
#define SLOW_LEASES 12 /* few enough for a server that bounds its pipeline */
#define SLOW_BATCH 50

static void fill_then_ignore(struct connection *c) {
  if (slow.filled < SLOW_JOBS) {
    slow.filled += SLOW_BATCH;
    start(c, ENQUEUE, &enqueue_request, SLOW_BATCH);
    return;
  }
  /* Many leases in one go, on a connection with a small window, and nobody reads. */
  shut(c);
  c->own.length = 0;
  for (int n = 0; n < SLOW_LEASES; n++)
    add(&c->own, lease_request.data, lease_request.length);
  c->is_deaf = true;
  c->kind = LEASE;
  c->request = &c->own;
  c->sent = 0;
  open_connection(c, 4096);
}

static void feed_body(struct connection *c) {
  static const char chunk[] = "10\r\n                \r\n";
  if (c->state == CLOSED) {
    head(&c->own, LEASE_PATH, "Transfer-Encoding: chunked\r\n");
    start(c, LEASE, &c->own, 0);
  } else if (c->state == BUSY && c->sent == c->own.length) {
    ssize_t n = send(c->fd, chunk, sizeof chunk - 1, MSG_NOSIGNAL);
    if (n > 0) slow.body_bytes += n;
  }
}

/* ---- which mode ---- */

static bool is_mode(const char *name) { return !strcmp(options.mode, name); }

static void on_answer(struct connection *c, struct answer *answer) {
  if (is_cycling)
    on_cycle_answer(c, answer);
  else if (is_mode("latency"))
    on_latency_answer(c, answer);
  else if (is_mode("polls"))
    start(c, LEASE, &lease_request, 0);
  else if (c == &connections[0])
    fill_then_ignore(c);
  else
    shut(c), slow.cut++;
}

static void on_lost(struct connection *c) {
  if (is_mode("slow")) {
    slow.cut++;
    return;
  }
  fail("connection lost", kind_names[c->kind], strlen(kind_names[c->kind]));
  if (total.errors > 100000) {
    fprintf(stderr, "%s\n", total.first_error);
    exit(1);
  }
  if (is_cycling && c->kind == ENQUEUE) promised -= c->jobs;
  if (is_cycling)
    next_in_cycle(c, ACK, 0);
  else if (c->kind != ENQUEUE)
    start(c, LEASE, &lease_request, 0);
}

static void begin_mode(void) {
  for (int n = 0; n < connections_count; n++) connections[n].fd = -1;
  if (is_cycling) {
    for (int n = 0; n < connections_count; n++) next_in_cycle(&connections[n], ACK, 0);
  } else if (is_mode("slow")) {
    fill_then_ignore(&connections[0]);
    connections[1].is_endless = true;
    feed_body(&connections[1]);
  } else {
    int polls = is_mode("polls") ? connections_count : options.pollers;
    for (int n = 0; n < polls; n++) start(&connections[n], LEASE, &lease_request, 0);
  }
}

static void drop_all(void) {
  for (int n = 0; n < connections_count; n++) shut(&connections[n]);
  for (int n = 0; n < connections_count; n++)
    start(&connections[n], LEASE, &lease_request, 0);
}

/* What is due now; answers when to look again, at the latest. */
static int64_t tick(int64_t now, int64_t until) {
  static int64_t drop_ns, feed_ns;
  if (is_mode("latency")) {
    while (next_ns <= now && next_ns < until) {
      int64_t before = next_ns;
      send_one();
      if (next_ns == before) break;
    }
    return next_ns;
  }
  if (is_mode("polls")) {
    if (!drop_ns) drop_ns = now + options.every * 1e9;
    if (now >= drop_ns) {
      drop_all();
      options.drops++;
      drop_ns = now_ns() + options.every * 1e9;
    }
    return drop_ns;
  }
  if (is_mode("slow")) {
    if (now < feed_ns) return feed_ns;
    feed_body(&connections[1]);
    if (connections[0].is_deaf && connections[0].state == CLOSED)
      fill_then_ignore(&connections[0]);
    return feed_ns = now + 50000000;
  }
  return until;
}

static bool is_done(void) {
  if (!is_cycling || !options.jobs) return false;
  if (total.acked >= options.jobs) return true;
  for (int n = 0; n < connections_count; n++)
    if (connections[n].state == BUSY || connections[n].state == CONNECTING) return false;
  return true;
}

static void forget_warmup(void) {
  total.enqueued = total.leased = total.acked = total.requests = 0;
  for (int n = 0; n < KINDS; n++) latency[n].count = 0;
  every_request.count = starts.count = delays.count = 0;
  total.began_ns = now_ns();
  total.cpu_s = cpu_s();
}

/* Milliseconds are too coarse a time-out for an open loop; a timer is exact. */
static void ring_at(int64_t at) {
  static int clock = -1;
  static int64_t armed;
  if (clock < 0) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (clock < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, clock, &event)) die("timer");
  }
  if (at == armed) return;
  struct itimerspec when = {
      .it_value = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000}};
  if (timerfd_settime(clock, TFD_TIMER_ABSTIME, &when, NULL)) die("timer");
  armed = at;
}

static void loop(void) {
  static struct epoll_event events[1024];
  total.began_ns = next_ns = now_ns();
  total.cpu_s = cpu_s();
  begin_mode();
  int64_t warm_ns = total.began_ns + options.warmup * 1e9;
  int64_t until = warm_ns + options.seconds * 1e9;
  bool is_warm = options.warmup <= 0;
  for (int64_t now = now_ns(); now < until && !is_done(); now = now_ns()) {
    if (!is_warm && now >= warm_ns) is_warm = true, forget_warmup();
    int64_t next = tick(now, until);
    if (next > until) next = until;
    if (!is_warm && next > warm_ns) next = warm_ns;
    ring_at(next);
    int count = epoll_wait(poller, events, 1024, next > now ? -1 : 0);
    for (int n = 0; n < count; n++) {
      struct connection *c = events[n].data.ptr;
      if (c && c->fd >= 0) on_event(c, events[n].events);
    }
  }
}

/* ---- the report ---- */

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void print_samples(const char *name, struct samples *s) {
  if (s->count) qsort(s->ms, s->count, sizeof *s->ms, by_size);
  size_t n = s->count;
  printf(",\"%s\":{\"count\":%zu", name, n);
  if (n)
    printf(",\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f", s->ms[n / 2],
           s->ms[n * 99 / 100], s->ms[n - 1]);
  printf("}");
}

static void print_text(const char *text) {
  putchar('"');
  for (; *text; text++)
    if (*text == '"' || *text == '\\')
      printf("\\%c", *text);
    else
      putchar((unsigned char)*text < ' ' || (unsigned char)*text > '~' ? ' ' : *text);
  putchar('"');
}

static void report(void) {
  double took = (now_ns() - total.began_ns) / 1e9;
  int open = 0;
  for (int n = 0; n < connections_count; n++) open += connections[n].state == BUSY;
  printf("{\"mode\":\"%s\",\"client\":\"C\",\"seconds\":%.3f", options.mode, took);
  printf(",\"enqueued\":%ld,\"leased\":%ld,\"acked\":%ld", total.enqueued, total.leased,
         total.acked);
  printf(",\"jobs_per_s\":%.1f,\"requests\":%ld,\"requests_per_s\":%.1f",
         total.acked / took, total.requests, total.requests / took);
  printf(",\"client_cpu_s\":%.4f,\"errors\":%ld,\"first_error\":", cpu_s() - total.cpu_s,
         total.errors);
  print_text(total.first_error);
  printf(",\"connects\":%ld,\"refused\":%ld,\"open\":%d,\"drops\":%d", total.connects,
         total.refused, open, options.drops);
  printf(",\"unstamped\":%ld,\"endless_bytes\":%ld,\"cut\":%ld", total.unstamped,
         slow.body_bytes, slow.cut);
  for (int n = 0; n < KINDS; n++) print_samples(kind_names[n], &latency[n]);
  print_samples("all", &every_request);
  print_samples("start", &starts);
  print_samples("send_delay", &delays);
  printf("}\n");
}

/* ---- options ---- */

static void read_option(const char *name, const char *value) {
  static const struct {
    const char *name;
    const char **text;
    int *whole;
    double *real;
  } known[] = {{"--host", &options.host, 0, 0},
               {"--queue", &options.queue, 0, 0},
               {"--token", &options.token, 0, 0},
               {"--wait", &options.wait, 0, 0},
               {"--lease", &options.lease, 0, 0},
               {"--port", 0, &options.port, 0},
               {"--connections", 0, &options.connections, 0},
               {"--batch", 0, &options.batch, 0},
               {"--payload", 0, &options.payload, 0},
               {"--pollers", 0, &options.pollers, 0},
               {"--seconds", 0, 0, &options.seconds},
               {"--warmup", 0, 0, &options.warmup},
               {"--rate", 0, 0, &options.rate},
               {"--every", 0, 0, &options.every}};
  if (!strcmp(name, "--jobs")) {
    options.jobs = atol(value);
    return;
  }
  for (size_t n = 0; n < sizeof known / sizeof *known; n++) {
    if (strcmp(name, known[n].name)) continue;
    if (known[n].text) *known[n].text = value;
    if (known[n].whole) *known[n].whole = atoi(value);
    if (known[n].real) *known[n].real = atof(value);
    return;
  }
  fprintf(stderr, "no such option: %s\n", name);
  exit(2);
}

static void prepare(void) {
  is_cycling = is_mode("cycle") || is_mode("single");
  if (!is_cycling && !is_mode("latency") && !is_mode("polls") && !is_mode("slow")) {
    fprintf(stderr, "no such mode: %s\n", options.mode);
    exit(2);
  }
  bool is_batched = is_mode("cycle") || is_mode("slow");
  if (!options.batch) options.batch = is_batched ? 100 : 1;
  if (!options.connections)
    options.connections = is_mode("cycle") ? 8 : is_mode("polls") ? 5000 : 64;
  connections_count = options.connections;
  int max = options.batch;
  if (is_mode("latency")) {
    senders_room = 1024;
    connections_count = options.pollers + senders_room;
    step_ns = 1e9 / options.rate;
    max = 10;
  }
  if (is_mode("slow")) {
    connections_count = 2;
    options.batch = SLOW_BATCH;
    options.payload = 8000;
  }
  write_enqueue(&enqueue_request, options.batch, "");
  write_lease(&lease_request, max);
  connections = calloc(connections_count, sizeof *connections);
  if (!connections) die("memory");
}

int main(int count, char **arguments) {
  struct rlimit files;
  if (count < 4 || count % 2) {
    fprintf(stderr, "usage: load MODE --port P [--name value ...]\n");
    return 2;
  }
  options.mode = arguments[1];
  for (int n = 2; n < count; n += 2) read_option(arguments[n], arguments[n + 1]);
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(EPOLL_CLOEXEC);
  prepare();
  loop();
  report();
  return 0;
}
