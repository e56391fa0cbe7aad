internal import Foundation
internal import KedgeLocks

/// A TCP proxy on 127.0.0.1 that applies faults to the bytes that pass, and counts them.
///
/// Clients keep one address while servers behind it come and go. One thread does all the work;
/// state that it shares with the test is behind a lock.
package final class FaultyProxy: Sendable {
    /// Counts of the bytes that passed, and of the faults applied to them.
    package struct Counts: Sendable {
        /// Bytes that reached the server, and the client.
        package var upByteCount = 0
        package var downByteCount = 0
        package var connectionCount = 0
        /// Connections through which bytes may still pass.
        package var openCount = 0
        package var cutCount = 0
        package var flipCount = 0
        package var stallCount = 0
        /// Heads of requests, in the order in which they came.
        package var requests: [HeadFields] = []
    }

    fileprivate struct Shared: Sendable {
        package var faults: Faults
        package var upstreamPort: UInt16
        package var counts = Counts()
        package var isStopped = false
        package var isListening = false
        /// Bytes of large bodies in the harmed direction, over all connections.
        package var bodyByteCount = 0
    }

    package let port: UInt16
    private let listener: Int32
    fileprivate let shared: Mutex<Shared>

    package var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter isListening: False refuses connections until ``listen()``.
    package init(upstreamPort: UInt16, faults: Faults, isListening: Bool = true) throws {
        (listener, port) = try Loopback.bound()
        shared = Mutex(Shared(faults: faults, upstreamPort: upstreamPort))
        if isListening { listen() }
    }

    deinit {
        // A proxy that never listened has no thread to close its socket.
        if !shared.withLock({ $0.isListening }) { close(listener) }
    }

    /// Accepts connections from now on.
    package func listen() {
        shared.withLock { $0.isListening = true }
        Foundation.listen(listener, 64)
        let loop = ProxyLoop(listener: listener, proxy: self)
        Thread.detachNewThread { loop.run() }
    }

    /// Ends all connections and takes no more.
    package func stop() { shared.withLock { $0.isStopped = true } }

    package var faults: Faults {
        get { shared.withLock { $0.faults } }
        set { shared.withLock { $0.faults = newValue } }
    }

    package var upstreamPort: UInt16 {
        get { shared.withLock { $0.upstreamPort } }
        set { shared.withLock { $0.upstreamPort = newValue } }
    }

    package var counts: Counts { shared.withLock { $0.counts } }
}

/// The work of a proxy's thread. Used by that thread alone.
private final class ProxyLoop: @unchecked Sendable {
    private let listener: Int32
    private let proxy: FaultyProxy
    private var links: [ProxyLink] = []
    /// The earliest time at which a slow proxy passes the next bytes.
    private var openTime = ContinuousClock.now

    init(listener: Int32, proxy: FaultyProxy) {
        self.listener = listener
        self.proxy = proxy
    }

    func run() {
        while true {
            let (faults, port, isStopped) = proxy.shared.withLock {
                ($0.faults, $0.upstreamPort, $0.isStopped)
            }
            if isStopped { break }
            step(faults, upstreamPort: port)
        }
        for link in links { link.close(resetting: true) }
        close(listener)
    }

    private func step(_ faults: Faults, upstreamPort: UInt16) {
        let wait = ContinuousClock.now.duration(to: openTime)
        let mayRead = faults.bytesPerSecond == nil || wait <= .zero
        var entries = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        for link in links { entries += link.interest(mayRead: mayRead) }
        let timeout = mayRead ? 20 : min(20, max(1, Int32(wait / .milliseconds(1))))
        guard poll(&entries, nfds_t(entries.count), timeout) > 0 else { return }
        for (position, link) in links.enumerated() {
            let passed = link.serve(
                (entries[1 + 2 * position], entries[2 + 2 * position]), faults, proxy.shared)
            if let rate = faults.bytesPerSecond, passed > 0 {
                openTime = max(openTime, .now) + .seconds(Double(passed) / Double(rate))
            }
        }
        let openCount = links.count
        links.removeAll { $0.isClosed }
        let closedCount = openCount - links.count
        proxy.shared.withLock { $0.counts.openCount -= closedCount }
        if entries[0].revents != 0 { acceptOne(upstreamPort) }
    }

    private func acceptOne(_ upstreamPort: UInt16) {
        guard let client = Loopback.accept(listener) else { return }
        guard let server = Loopback.connect(to: upstreamPort) else {
            close(client)
            return
        }
        proxy.shared.withLock { shared in
            shared.counts.connectionCount += 1
            shared.counts.openCount += 1
        }
        links.append(ProxyLink(client: client, server: server))
    }
}

/// One client with its connection to the server.
private final class ProxyLink {
    private var up: ProxyPipe
    private var down: ProxyPipe
    private(set) var isClosed = false
    private var isStalled = false

    init(client: Int32, server: Int32) {
        for descriptor in [client, server] {
            let flags = fcntl(descriptor, F_GETFL)
            _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        }
        up = ProxyPipe(from: client, to: server)
        down = ProxyPipe(from: server, to: client)
    }

    /// The events to poll for: the client's socket, then the server's.
    func interest(mayRead: Bool) -> [pollfd] {
        func events(_ reading: ProxyPipe, _ writing: ProxyPipe) -> Int16 {
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
    func serve(
        _ ready: (client: pollfd, server: pollfd), _ faults: Faults,
        _ shared: borrowing Mutex<FaultyProxy.Shared>
    ) -> Int {
        guard !isClosed, !isStalled else { return 0 }
        let canRead = Int16(POLLIN | POLLHUP | POLLERR)
        var passed = 0
        var harm = Harm()
        if ready.client.revents & canRead != 0, up.wantsToRead {
            passed += up.read(faults, faults.direction == .up, &harm, shared)
        }
        if ready.server.revents & canRead != 0, down.wantsToRead {
            passed += down.read(faults, faults.direction == .down, &harm, shared)
        }
        let (upCount, downCount) = (up.write(), down.write())
        shared.withLock { shared in
            shared.counts.upByteCount += upCount
            shared.counts.downByteCount += downCount
            shared.counts.requests += up.takeHeads().map(HeadFields.init)
        }
        _ = down.takeHeads()
        if up.isBroken || down.isBroken || up.isFinished && down.isFinished {
            close(resetting: up.isBroken || down.isBroken)
        } else if up.isCutDue || down.isCutDue {
            shared.withLock { $0.counts.cutCount += 1 }
            close(resetting: faults.cut == .reset)
        } else if harm.stalls {
            isStalled = true
        }
        return passed
    }

    func close(resetting: Bool) {
        guard !isClosed else { return }
        isClosed = true
        for descriptor in [up.from, down.from] {
            if resetting { Loopback.resetOnClose(descriptor) }
            Foundation.close(descriptor)
        }
    }
}

/// Faults that are due after a read.
private struct Harm {
    var stalls = false
}

/// One direction of a link.
private struct ProxyPipe {
    let from: Int32
    let to: Int32
    private var pending: [UInt8] = []
    private var written = 0
    private var readByteCount = 0
    private var tracker = MessageTracker()
    private var takenHeadCount = 0
    private var hasEnded = false
    private var hasForwardedEnd = false
    private var isCutting = false
    private(set) var isBroken = false

    init(from: Int32, to: Int32) {
        self.from = from
        self.to = to
    }

    var wantsToRead: Bool { pending.isEmpty && !hasEnded && !isCutting }
    var wantsToWrite: Bool { !pending.isEmpty }
    var isFinished: Bool { hasForwardedEnd }
    /// Whether a cut is due and all bytes before it have passed.
    var isCutDue: Bool { isCutting && pending.isEmpty }

    mutating func takeHeads() -> [String] {
        defer { takenHeadCount = tracker.heads.count }
        return Array(tracker.heads[takenHeadCount...])
    }

    /// Reads once, and applies faults to the bytes.
    mutating func read(
        _ faults: Faults, _ isHarmed: Bool, _ harm: inout Harm,
        _ shared: borrowing Mutex<FaultyProxy.Shared>
    ) -> Int {
        var limit = 64 << 10
        if isHarmed, let most = faults.cutsAfter { limit = min(limit, most - readByteCount) }
        let from = from
        var count = 0
        pending = [UInt8](unsafeUninitializedCapacity: max(1, limit)) { buffer, initialized in
            count = recv(from, buffer.baseAddress, buffer.count, 0)
            initialized = max(0, count)
        }
        written = 0
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return 0 }
            if count < 0 { isBroken = true } else { hasEnded = true }
            return 0
        }
        readByteCount += count
        let bodies = tracker.follow(pending[...])
        guard isHarmed else { return count }
        if let distance = faults.flipsEvery { flip(bodies, every: distance, shared) }
        if let most = faults.cutsAfter, readByteCount >= most { isCutting = true }
        if let most = faults.cutsAfterAnswers, tracker.bodyCount >= most { isCutting = true }
        if let most = faults.stallsAfter, readByteCount >= most {
            harm.stalls = shared.withLock { shared in
                guard shared.counts.stallCount < faults.stallCount else { return false }
                shared.counts.stallCount += 1
                return true
            }
        }
        return count
    }

    private mutating func flip(
        _ bodies: [Range<Int>], every distance: Int,
        _ shared: borrowing Mutex<FaultyProxy.Shared>
    ) {
        for body in bodies {
            let target: Int? = shared.withLock { shared in
                let before = shared.bodyByteCount
                shared.bodyByteCount += body.count
                let next = (before / distance + 1) * distance
                guard next <= shared.bodyByteCount else { return nil }
                shared.counts.flipCount += 1
                return body.lowerBound + next - before - 1
            }
            if let target { pending[target] ^= 0x10 }
        }
    }

    /// Writes the bytes that can be written.
    mutating func write() -> Int {
        var count = 0
        while written < pending.count {
            let (to, start) = (to, written)
            let sent = pending.withUnsafeBytes { bytes in
                send(
                    to, bytes.baseAddress.map { $0 + start }, bytes.count - start,
                    Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else {
                if errno != EAGAIN, errno != EINTR { isBroken = true }
                return count
            }
            written += sent
            count += sent
        }
        pending = []
        if hasEnded, !hasForwardedEnd {
            shutdown(to, Int32(SHUT_WR))
            hasForwardedEnd = true
        }
        return count
    }
}
