internal import Glibc
internal import KedgeLocks

/// A direction through a relay.
package enum RelayDirection: Sendable, Hashable {
    /// From client to server.
    case up
    /// From server to client.
    case down
}

/// The relay's next step on a connection, after bytes that a filter has seen.
enum RelayStep: Equatable {
    case goOn
    /// Once the bytes have passed, the connection ends, in order or with a reset.
    case cut(resetting: Bool)
    /// The connection goes silent and stays open.
    case stall
}

/// The faults of one relayed connection. The relay's thread makes all calls.
protocol RelayFilter: AnyObject {
    /// Returns the maximum size of the next read.
    func readLimit(_ direction: RelayDirection) -> Int
    /// Changes bytes that were read, before they pass.
    func pass(_ bytes: inout [UInt8], _ direction: RelayDirection) -> RelayStep
    /// Notes bytes that have passed.
    func notePassed(_ byteCount: Int, _ direction: RelayDirection)
    /// Notes that the connection is about to be cut.
    func noteCut()
    /// Notes that the connection is closed.
    func noteEnd()
}

extension RelayFilter {
    func readLimit(_ direction: RelayDirection) -> Int { .max }
    func notePassed(_ byteCount: Int, _ direction: RelayDirection) {}
    func noteCut() {}
    func noteEnd() {}
}

/// Relays connections from a port of 127.0.0.1 to another one, through filters.
///
/// One thread does all the work, and it alone uses the sockets of connections.
final class TCPRelay: Sendable {
    struct Settings: Sendable {
        var upstreamPort: UInt16
        /// Maximum number of bytes a second, in both directions of all connections together.
        var bytesPerSecond: Int?
    }

    private let socket: ListeningSocket
    private let settings: @Sendable () -> Settings
    private let makeFilter: @Sendable () -> any RelayFilter

    var port: UInt16 { socket.port }

    /// Binds a free port. Connections are refused until ``listen()``.
    ///
    /// - Parameters:
    ///   - settings: Returns the settings of the moment.
    ///   - makeFilter: Makes the filter of a connection that begins.
    init(
        settings: @escaping @Sendable () -> Settings,
        makeFilter: @escaping @Sendable () -> any RelayFilter
    ) throws {
        self.settings = settings
        self.makeFilter = makeFilter
        socket = try ListeningSocket()
    }

    deinit { stop() }

    /// Accepts connections from now on.
    func listen() {
        socket.listen()
        let hasStarted = DetachedThread.start { [socket, settings, makeFilter] in
            RelayLoop(listener: socket.number, settings, makeFilter).run()
            socket.close()
        }
        precondition(hasStarted, "the system has a thread")
    }

    /// Resets all connections and takes no more.
    func stop() { socket.stop() }
}

/// The work of a relay's thread.
private final class RelayLoop {
    private let listener: Int32
    private let settings: () -> TCPRelay.Settings
    private let makeFilter: () -> any RelayFilter
    private var links: [RelayLink] = []
    /// The earliest time at which a slow relay passes the next bytes.
    private var openTime = ContinuousClock.now

    init(
        listener: Int32, _ settings: @escaping () -> TCPRelay.Settings,
        _ makeFilter: @escaping () -> any RelayFilter
    ) {
        self.listener = listener
        self.settings = settings
        self.makeFilter = makeFilter
    }

    func run() {
        while step(settings()) {}
        for link in links { link.close(resetting: true) }
    }

    /// Waits for events and serves them.
    ///
    /// - Returns: False when the relay was stopped.
    private func step(_ settings: TCPRelay.Settings) -> Bool {
        let wait = ContinuousClock.now.duration(to: openTime)
        let mayRead = settings.bytesPerSecond == nil || wait <= .zero
        var entries = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        for link in links { entries += link.interest(mayRead: mayRead) }
        // Short, because the settings may change meanwhile.
        let timeout = mayRead ? 20 : min(20, max(1, Int32(wait / .milliseconds(1))))
        guard poll(&entries, nfds_t(entries.count), timeout) > 0 else { return true }
        guard entries[0].revents & Int16(POLLHUP) == 0 else { return false }
        for (position, link) in links.enumerated() {
            let byteCount = link.serve(entries[1 + 2 * position], entries[2 + 2 * position])
            if let rate = settings.bytesPerSecond, byteCount > 0 {
                openTime = max(openTime, .now) + .seconds(Double(byteCount) / Double(rate))
            }
        }
        links.removeAll { $0.isClosed }
        if entries[0].revents != 0 { acceptOne(settings.upstreamPort) }
        return true
    }

    private func acceptOne(_ upstreamPort: UInt16) {
        guard let client = LoopbackSocket.accept(listener) else { return }
        guard let server = LoopbackSocket.connect(to: upstreamPort) else {
            close(client)
            return
        }
        links.append(RelayLink(client: client, server: server, filter: makeFilter()))
    }
}

/// One client with its connection to the server.
private final class RelayLink {
    private let filter: any RelayFilter
    private var up: RelayPipe
    private var down: RelayPipe
    private(set) var isClosed = false
    private var isStalled = false

    init(client: Int32, server: Int32, filter: any RelayFilter) {
        for descriptor in [client, server] {
            let flags = fcntl(descriptor, F_GETFL)
            _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        }
        self.filter = filter
        up = RelayPipe(.up, from: client, to: server)
        down = RelayPipe(.down, from: server, to: client)
    }

    /// The events to poll for: the client's socket, then the server's.
    func interest(mayRead: Bool) -> [pollfd] {
        func events(_ reading: RelayPipe, _ writing: RelayPipe) -> Int16 {
            var events: Int16 = 0
            if reading.wantsToRead, mayRead { events |= Int16(POLLIN) }
            if writing.wantsToWrite { events |= Int16(POLLOUT) }
            return events
        }
        if isStalled {
            // The link is held open and not polled, like a link that lost its other end.
            return [pollfd(fd: -1, events: 0, revents: 0), pollfd(fd: -1, events: 0, revents: 0)]
        }
        // A socket without work is left out: its end would be reported over and over.
        return [(up, down), (down, up)].map { reading, writing in
            let events = events(reading, writing)
            return pollfd(fd: events == 0 ? -1 : reading.from, events: events, revents: 0)
        }
    }

    /// Moves the bytes that can be moved.
    ///
    /// - Returns: Number of bytes read.
    func serve(_ client: pollfd, _ server: pollfd) -> Int {
        guard !isClosed, !isStalled else { return 0 }
        let upByteCount = up.read(client, filter)
        let downByteCount = down.read(server, filter)
        up.write(filter)
        down.write(filter)
        if up.isBroken || down.isBroken || up.isFinished && down.isFinished {
            close(resetting: up.isBroken || down.isBroken)
        } else {
            follow(up.dueStep == .goOn ? down.dueStep : up.dueStep)
        }
        return upByteCount + downByteCount
    }

    private func follow(_ step: RelayStep) {
        switch step {
        case .goOn: break
        case .cut(let resetting):
            filter.noteCut()
            close(resetting: resetting)
        case .stall: isStalled = true
        }
    }

    func close(resetting: Bool) {
        guard !isClosed else { return }
        isClosed = true
        for descriptor in [up.from, down.from] {
            if resetting { LoopbackSocket.resetOnClose(descriptor) }
            Glibc.close(descriptor)
        }
        filter.noteEnd()
    }
}

/// One direction of a link.
private struct RelayPipe {
    let from: Int32
    private let to: Int32
    private let direction: RelayDirection
    private var pending: [UInt8] = []
    private var written = 0
    private var step = RelayStep.goOn
    private var hasEnded = false
    /// Whether the end was passed on.
    private(set) var isFinished = false
    private(set) var isBroken = false

    init(_ direction: RelayDirection, from: Int32, to: Int32) {
        self.direction = direction
        self.from = from
        self.to = to
    }

    var wantsToRead: Bool { pending.isEmpty && !hasEnded && step == .goOn }
    var wantsToWrite: Bool { !pending.isEmpty }
    /// The filter's step; a cut waits until all bytes before it have passed.
    var dueStep: RelayStep { pending.isEmpty || step == .stall ? step : .goOn }

    /// Reads once, if there is something to read, and filters the bytes.
    ///
    /// - Returns: Number of bytes read.
    mutating func read(_ ready: pollfd, _ filter: any RelayFilter) -> Int {
        let canRead = Int16(POLLIN | POLLHUP | POLLERR)
        guard ready.revents & canRead != 0, wantsToRead else { return 0 }
        let limit = max(1, min(64 << 10, filter.readLimit(direction)))
        let from = from
        var count = 0
        pending = [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
            count = recv(from, buffer.baseAddress, buffer.count, 0)
            initialized = max(0, count)
        }
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return 0 }
            if count < 0 { isBroken = true } else { hasEnded = true }
            return 0
        }
        step = filter.pass(&pending, direction)
        return count
    }

    /// Writes the bytes that can be written.
    mutating func write(_ filter: any RelayFilter) {
        while written < pending.count {
            let (to, start) = (to, written)
            let sent = pending.withUnsafeBytes { bytes in
                send(
                    to, bytes.baseAddress.map { $0 + start }, bytes.count - start,
                    Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else {
                if errno != EAGAIN, errno != EINTR { isBroken = true }
                return
            }
            written += sent
            filter.notePassed(sent, direction)
        }
        pending = []
        written = 0
        if hasEnded, !isFinished {
            shutdown(to, Int32(SHUT_WR))
            isFinished = true
        }
    }
}
