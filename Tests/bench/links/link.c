// A link between two network namespaces: it passes IP packets from a TUN device to another one.
//
//   link LEFT RIGHT DEVICE DELAY_US BITS_PER_SECOND QUEUE_BYTES LOSS SEED DEATH_BYTES DEATH_MS LOG
//
// LEFT and RIGHT are files of network namespaces, such as /proc/PID/ns/net; each has a TUN device
// with the name DEVICE. Each direction has its own line:
//
// - A packet that finds more than QUEUE_BYTES before it is dropped.
// - The line sends one packet after the other, at BITS_PER_SECOND of IP bytes.
// - Each packet is lost with the probability LOSS. A lost packet takes its time on the line.
// - A packet that is not lost arrives DELAY_US after the line has sent it.
//
// The losses come from a generator for each direction, so that a SEED gives the same losses: the
// packet number 17 of a direction is lost, or not, in every run.
//
// A connection dies after DEATH_BYTES of payload in both directions, or with all others every
// DEATH_MS; 0 means never. Both ends get a reset (RST) at that moment. Packets of a dead connection
// are dropped, also those already on the line, and each is answered with a reset. A reset has the
// sequence number that its receiver expects next, because the receiver would ignore others
// (RFC 9293 section 3.10.7.4).
//
// LOG gets a record for each packet; see struct record. SIGTERM ends the program.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { largest_packet = 1500, line_slots = 16384, nanoseconds = 1000000000 };

// The fate of a packet, as the log names it.
enum fate { delivered, lost, queue_full, connection_dead, reset_by_link };

// A record of the log, in the byte order of the machine, without gaps.
struct __attribute__((packed)) record {
    uint64_t sent_ns, arrived_ns;  // of the monotonic clock; the second is 0 for a dropped packet
    uint32_t sequence, acknowledged;
    uint16_t left_port, right_port, payload_bytes, packet_bytes;
    uint8_t direction, fate, flags, unused;
};

struct packet {
    uint64_t sent_ns, due_ns;
    bool is_lost;
    uint16_t size;
    uint8_t bytes[largest_packet];
};

// One direction. The packets on it are those from `first` up to `end`.
struct line {
    uint64_t free_ns;  // when it has sent everything that is queued
    uint64_t random;
    uint32_t first, end;
    struct packet *packets;
};

// A connection, found by its port on the left: the left side has one address.
struct connection {
    bool is_known, is_dead;
    uint64_t byte_count;
    uint32_t next[2];  // the sequence number that the receiver of this direction expects
    bool has_next[2];
    struct iphdr ip;    // of a packet from left to right
    uint16_t left_port, right_port;
};

// The parts of a TCP packet.
struct segment {
    struct iphdr ip;
    struct tcphdr tcp;
    uint16_t payload_bytes;
    struct connection *connection;
};

static uint64_t delay_ns, bits_per_second, queue_bytes, loss_limit, death_bytes, death_ns;
static int devices[2];
static struct line lines[2];
static struct connection connections[65536];
static FILE *log_file;
static volatile sig_atomic_t is_over;

static void end_soon(int number) {
    (void)number;
    is_over = 1;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * nanoseconds + (uint64_t)now.tv_nsec;
}

// splitmix64
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int open_device(const char *namespace, const char *name) {
    int space = open(namespace, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(namespace);
    close(space);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(device, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
    // Without offloads the device gives packets that fit into its MTU.
    if (ioctl(device, TUNSETOFFLOAD, 0) != 0) fail("TUNSETOFFLOAD");
    return device;
}

// Reads the headers. False for a packet that is not TCP.
static bool parse(const uint8_t *bytes, uint16_t size, int direction, struct segment *segment) {
    if (size < sizeof(struct iphdr)) return false;
    memcpy(&segment->ip, bytes, sizeof(struct iphdr));
    uint16_t head = segment->ip.ihl * 4u;
    if (segment->ip.protocol != IPPROTO_TCP || size < head + sizeof(struct tcphdr)) return false;
    memcpy(&segment->tcp, bytes + head, sizeof(struct tcphdr));
    segment->payload_bytes = size - head - segment->tcp.doff * 4u;
    segment->connection =
        &connections[ntohs(direction == 0 ? segment->tcp.source : segment->tcp.dest)];
    return true;
}

static void write_record(
    const struct segment *segment, uint16_t size, int direction, enum fate fate, uint64_t sent_ns,
    uint64_t arrived_ns
) {
    const struct tcphdr *tcp = &segment->tcp;
    struct record record = {
        .sent_ns = sent_ns,
        .arrived_ns = arrived_ns,
        .sequence = ntohl(tcp->seq),
        .acknowledged = ntohl(tcp->ack_seq),
        .left_port = ntohs(direction == 0 ? tcp->source : tcp->dest),
        .right_port = ntohs(direction == 0 ? tcp->dest : tcp->source),
        .payload_bytes = segment->payload_bytes,
        .packet_bytes = size,
        .direction = (uint8_t)direction,
        .fate = (uint8_t)fate,
        .flags = (uint8_t)(tcp->fin | tcp->syn << 1 | tcp->rst << 2 | tcp->ack << 4),
    };
    fwrite(&record, sizeof record, 1, log_file);
}

static uint32_t add_words(uint32_t sum, const void *bytes, size_t size) {
    for (size_t index = 0; index + 1 < size; index += 2) {
        uint16_t word;
        memcpy(&word, (const uint8_t *)bytes + index, 2);
        sum += word;
    }
    return sum;
}

static uint16_t checksum(uint32_t sum) {
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)~sum;
}

// Sends a reset to the receiver of a direction.
static void send_reset(struct connection *connection, int direction, uint32_t sequence) {
    struct segment reset = {.connection = connection};
    bool is_right = direction == 0;
    reset.ip = (struct iphdr){
        .version = 4,
        .ihl = 5,
        .tot_len = htons(sizeof reset.ip + sizeof reset.tcp),
        .ttl = 64,
        .protocol = IPPROTO_TCP,
        .saddr = is_right ? connection->ip.saddr : connection->ip.daddr,
        .daddr = is_right ? connection->ip.daddr : connection->ip.saddr,
    };
    reset.ip.check = checksum(add_words(0, &reset.ip, sizeof reset.ip));
    reset.tcp = (struct tcphdr){
        .source = htons(is_right ? connection->left_port : connection->right_port),
        .dest = htons(is_right ? connection->right_port : connection->left_port),
        .seq = htonl(sequence),
        .doff = 5,
        .rst = 1,
    };
    uint32_t sum = add_words(0, &reset.ip.saddr, 8) + htons(IPPROTO_TCP) + htons(sizeof reset.tcp);
    reset.tcp.check = checksum(add_words(sum, &reset.tcp, sizeof reset.tcp));
    uint8_t bytes[sizeof reset.ip + sizeof reset.tcp];
    memcpy(bytes, &reset.ip, sizeof reset.ip);
    memcpy(bytes + sizeof reset.ip, &reset.tcp, sizeof reset.tcp);
    if (write(devices[1 - direction], bytes, sizeof bytes) < 0 && errno != EAGAIN) fail("write");
    uint64_t now = now_ns();
    write_record(&reset, sizeof bytes, direction, reset_by_link, now, now);
}

static void kill_connection(struct connection *connection) {
    connection->is_dead = true;
    for (int direction = 0; direction < 2; ++direction) {
        if (connection->has_next[direction]) {
            send_reset(connection, direction, connection->next[direction]);
        }
    }
}

// Keeps what is known about a connection up to date with a packet that arrives.
static void follow(struct segment *segment, int direction) {
    struct connection *connection = segment->connection;
    const struct tcphdr *tcp = &segment->tcp;
    uint32_t next = ntohl(tcp->seq) + segment->payload_bytes + tcp->syn + tcp->fin;
    if (!connection->has_next[direction] || (int32_t)(next - connection->next[direction]) > 0) {
        connection->next[direction] = next;
        connection->has_next[direction] = true;
    }
    connection->byte_count += segment->payload_bytes;
}

// A SYN from the left opens a connection, also where one with this port has died.
static void open_connection(const struct segment *segment) {
    *segment->connection = (struct connection){
        .is_known = true,
        .ip = segment->ip,
        .left_port = ntohs(segment->tcp.source),
        .right_port = ntohs(segment->tcp.dest),
    };
}

// Takes a packet from a device and puts it on the line, or drops it.
static void take(const uint8_t *bytes, uint16_t size, int direction) {
    struct line *line = &lines[direction];
    struct segment segment;
    uint64_t now = now_ns();
    if (!parse(bytes, size, direction, &segment)) return;
    if (direction == 0 && segment.tcp.syn) open_connection(&segment);
    if (segment.connection->is_dead) {
        write_record(&segment, size, direction, connection_dead, now, 0);
        if (!segment.tcp.rst) {
            send_reset(segment.connection, 1 - direction, ntohl(segment.tcp.ack_seq));
        }
        return;
    }
    uint64_t begin = line->free_ns > now ? line->free_ns : now;
    uint64_t waiting_bytes = (begin - now) * bits_per_second / 8 / nanoseconds;
    bool has_slot = line->end - line->first < line_slots;
    if (waiting_bytes + size > queue_bytes || !has_slot) {
        write_record(&segment, size, direction, queue_full, now, 0);
        return;
    }
    line->free_ns = begin + (uint64_t)size * 8 * nanoseconds / bits_per_second;
    struct packet *packet = &line->packets[line->end++ % line_slots];
    packet->sent_ns = now;
    packet->due_ns = line->free_ns + delay_ns;
    packet->is_lost = next_random(&line->random) >> 11 < loss_limit;
    packet->size = size;
    memcpy(packet->bytes, bytes, size);
}

// Delivers a packet at the end of the line, unless it is lost or its connection has died.
static void deliver(const struct packet *packet, int direction) {
    struct segment segment;
    parse(packet->bytes, packet->size, direction, &segment);
    enum fate fate = packet->is_lost ? lost : delivered;
    if (segment.connection->is_dead) fate = connection_dead;
    uint64_t arrived_ns = fate == delivered ? now_ns() : 0;
    write_record(&segment, packet->size, direction, fate, packet->sent_ns, arrived_ns);
    if (fate != delivered) return;
    if (write(devices[1 - direction], packet->bytes, packet->size) < 0 && errno != EAGAIN) {
        fail("write");
    }
    follow(&segment, direction);
    bool is_used_up = death_bytes > 0 && segment.connection->byte_count >= death_bytes;
    if (is_used_up && segment.connection->is_known) kill_connection(segment.connection);
}

static void take_all(int direction) {
    uint8_t bytes[largest_packet];
    // The other direction gets its turn after some packets.
    for (int count = 0; count < 64; ++count) {
        ssize_t size = read(devices[direction], bytes, sizeof bytes);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < 0) fail("read");
        take(bytes, (uint16_t)size, direction);
    }
}

static void deliver_due(int direction) {
    struct line *line = &lines[direction];
    while (line->first != line->end) {
        struct packet *packet = &line->packets[line->first % line_slots];
        if (packet->due_ns > now_ns()) return;
        deliver(packet, direction);
        ++line->first;
    }
}

static void kill_all_connections(void) {
    for (int port = 0; port < 65536; ++port) {
        struct connection *connection = &connections[port];
        if (connection->is_known && !connection->is_dead) kill_connection(connection);
    }
}

static void pass_packets(void) {
    struct pollfd wanted[2] = {
        {.fd = devices[0], .events = POLLIN}, {.fd = devices[1], .events = POLLIN}};
    uint64_t death_time = death_ns > 0 ? now_ns() + death_ns : UINT64_MAX;
    sigset_t none;
    sigemptyset(&none);
    while (!is_over) {
        uint64_t next = death_time, now = now_ns();
        for (int direction = 0; direction < 2; ++direction) {
            struct line *line = &lines[direction];
            if (line->first == line->end) continue;
            uint64_t due_ns = line->packets[line->first % line_slots].due_ns;
            if (due_ns < next) next = due_ns;
        }
        uint64_t wait = next > now ? next - now : 0;
        struct timespec limit = {
            .tv_sec = (time_t)(wait / nanoseconds), .tv_nsec = (long)(wait % nanoseconds)};
        int count = ppoll(wanted, 2, next == UINT64_MAX ? NULL : &limit, &none);
        if (count < 0 && errno != EINTR) fail("ppoll");
        for (int direction = 0; count > 0 && direction < 2; ++direction) {
            if (wanted[direction].revents != 0) take_all(direction);
        }
        for (int direction = 0; direction < 2; ++direction) deliver_due(direction);
        if (now_ns() >= death_time) {
            kill_all_connections();
            death_time += death_ns;
        }
    }
}

int main(int count, char **words) {
    if (count != 12) {
        fputs("link LEFT RIGHT DEVICE DELAY_US BITS_PER_SECOND QUEUE_BYTES LOSS SEED DEATH_BYTES "
              "DEATH_MS LOG\n", stderr);
        return 2;
    }
    // Signals arrive while the program waits, at no other time.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct sigaction action = {.sa_handler = end_soon};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    // The link is not slower because programs at its ends are busy.
    setpriority(PRIO_PROCESS, 0, -20);
    prctl(PR_SET_TIMERSLACK, 200000);

    delay_ns = strtoull(words[4], NULL, 10) * 1000;
    bits_per_second = strtoull(words[5], NULL, 10);
    queue_bytes = strtoull(words[6], NULL, 10);
    loss_limit = (uint64_t)(strtod(words[7], NULL) * (double)(1ull << 53));
    uint64_t seed = strtoull(words[8], NULL, 10);
    death_bytes = strtoull(words[9], NULL, 10);
    death_ns = strtoull(words[10], NULL, 10) * 1000000;
    log_file = fopen(words[11], "wb");
    if (log_file == NULL) fail(words[11]);
    setvbuf(log_file, NULL, _IOFBF, 1 << 20);
    for (int direction = 0; direction < 2; ++direction) {
        lines[direction].random = seed * 2 + (uint64_t)direction;
        lines[direction].packets = calloc(line_slots, sizeof(struct packet));
        if (lines[direction].packets == NULL) fail("calloc");
        devices[direction] = open_device(words[1 + direction], words[3]);
    }
    puts("ready");
    fflush(stdout);
    pass_packets();
    if (fclose(log_file) != 0) fail(words[11]);
    return 0;
}
