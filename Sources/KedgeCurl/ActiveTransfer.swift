import CCurl
import HTTPTypes

/// One transfer on the curl thread: what libcurl's callbacks read and write.
///
/// Made, used and freed on that thread alone, hence not `Sendable`; what the caller may touch is in
/// its ``Exchange``. ``MultiHandle`` keeps it alive for as long as libcurl points to it.
final class ActiveTransfer {
    /// How many received bytes are gathered before the reader hears of them, unless the round ends
    /// first. libcurl hands out 16 KiB at a time, and waking a task for each would cost more than
    /// moving the bytes.
    private static let flushByteCount = 256 * 1024

    /// Bodies up to this size are read by any server, also by one that does not want them.
    private static let smallBodyByteCount: Int64 = 64 * 1024

    let exchange: Exchange
    let easy: EasyHandle
    let request: CurlRequest
    let stallTimeout: Duration

    /// When to give up as a whole; brought forward when the response is only being discarded.
    var deadline: ContinuousClock.Instant?
    /// A failure found by a callback, which libcurl only knows as an aborted transfer.
    private(set) var failure: CurlError?
    private(set) var progress = CurlFailure.Progress(
        hasRequestBegun: false, hasResponseHead: false)
    private(set) var isPaused = false

    private var head: ResponseHeadParser
    private var staging: [UInt8] = []
    private var isReaderBehind = false
    private var isUnwanted = false
    private var uploadOffset: Int64 = 0
    private var sentByteCount: Int64 = 0
    private var receivedByteCount: Int64 = 0
    private var expectedByteCount: Int64?
    private var hasMoved = false
    private var lastMove: ContinuousClock.Instant

    init(
        _ entry: ConnectionLine.Entry, configuration: CurlClient.Configuration,
        now: ContinuousClock.Instant
    ) throws(EasyHandle.Refusal) {
        self.exchange = entry.exchange
        self.request = entry.request
        self.stallTimeout = request.stallTimeout ?? configuration.stallTimeout
        self.deadline = entry.deadline
        self.head = ResponseHeadParser(maxByteCount: configuration.maxResponseHeaderBytes)
        self.lastMove = now
        self.easy = try EasyHandle.make(for: request, configuration: configuration)
        try installCallbacks()
    }

    /// What libcurl's result, or the failure a callback met first, means to the caller.
    func error(for result: CURLcode) -> CurlError? {
        if let failure { return failure }
        guard result != CURLE_OK else { return nil }
        return CurlError(
            CurlFailure.code(for: result, after: progress), for: exchange.subject,
            reason: CurlFailure.reason(for: result, easy.findings(of: result)),
            curlCode: Int32(result.rawValue), detail: easy.detail(of: result))
    }
}

// MARK: - Time

extension ActiveTransfer {
    /// When this transfer next has to be looked at; `nil` while only events can move it.
    var nextCheck: ContinuousClock.Instant? {
        // Before the request begins the connect timeout rules. While the reader is behind, silence
        // is our own doing.
        guard progress.hasRequestBegun, !isPaused else { return deadline }
        let stalledAt = lastMove + stallTimeout
        return deadline.map { min($0, stalledAt) } ?? stalledAt
    }

    /// Notes what moved since the last round, then says whether the transfer's time is up.
    func checkClock(now: ContinuousClock.Instant) -> CurlError? {
        if hasMoved {
            hasMoved = false
            lastMove = now
        }
        guard let nextCheck, now >= nextCheck else { return nil }
        if let deadline, now >= deadline {
            return exchange.error(.timedOut, "the exchange took longer than allowed")
        }
        return exchange.error(.stalled, "no byte in either direction for \(stallTimeout)")
    }

    /// Whether an unread response is short enough to be received for the sake of its connection.
    var isWorthFinishing: Bool {
        let remaining = (expectedByteCount ?? 0) - receivedByteCount
        return !isPaused && uploadOffset >= (request.body?.byteCount ?? 0)
            && remaining <= Int64(Exchange.discardLimitByteCount)
    }
}

// MARK: - Receiving

extension ActiveTransfer {
    /// Takes one line of a header block; the count taken, or 0 to abort.
    func receiveHeaderLine(_ line: [UInt8]) -> Int {
        hasMoved = true
        switch head.consume(line) {
        case .incomplete:
            break
        case .complete(let response):
            progress.hasResponseHead = true
            refuseDoubtfulReuse(after: response)
            expectedByteCount = response.headerFields[.contentLength].flatMap { Int64($0) }
            exchange.deliver(response)
        case .tooLarge:
            failure = exchange.error(.responseTooLarge, "the response head is too large")
            return 0
        case .malformed:
            failure = exchange.error(.protocolError, "malformed head")
            return 0
        }
        return line.count
    }

    /// A server may refuse a request before its body, keep the connection and never read the rest. When
    /// that fits the socket's buffer libcurl takes it for sent, and would let the next request wait behind.
    private func refuseDoubtfulReuse(after response: HTTPResponse) {
        guard response.status.code >= 300,
            request.body?.byteCount ?? 0 > Self.smallBodyByteCount
        else { return }
        easy.forbidReuse()
    }

    /// Takes body bytes; the count taken, or what makes libcurl pause or abort.
    func receiveBody(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        hasMoved = true
        if isUnwanted {
            failure = exchange.error(.cancelled, "the response is not wanted")
            return 0
        }
        if isReaderBehind {
            if exchange.pauseIfFull() {
                // libcurl keeps these bytes and offers them again on resuming.
                isPaused = true
                return Int(CURL_WRITEFUNC_PAUSE)
            }
            isReaderBehind = false
        }
        if staging.count + bytes.count > Self.flushByteCount { flush() }
        if staging.isEmpty { reserveStaging() }
        unsafe staging.append(contentsOf: bytes)
        receivedByteCount += Int64(bytes.count)
        return bytes.count
    }

    /// Makes room for one flush, or for what is left of a shorter body.
    private func reserveStaging() {
        let left = expectedByteCount.map { max($0 - receivedByteCount, 0) } ?? .max
        staging.reserveCapacity(Int(min(left, Int64(Self.flushByteCount))))
    }

    /// Lets the reader have what was gathered.
    func flush() {
        guard !staging.isEmpty else { return }
        let chunk = staging
        staging = []
        switch exchange.deliver(chunk) {
        case .more: break
        case .full: isReaderBehind = true
        case .none: isUnwanted = true
        }
    }

    /// Continues after a pause. The write callback runs within, and may pause again.
    func resume() -> CURLcode {
        guard isPaused else { return CURLE_OK }
        isPaused = false
        hasMoved = true
        return easy.resume()
    }
}

// MARK: - Sending

extension ActiveTransfer {
    /// The connection is there and the request about to be written.
    func beginRequest() {
        progress.hasRequestBegun = true
        hasMoved = true
    }

    /// Fills libcurl's upload buffer; the count filled, or what makes it abort.
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let body = request.body else { return 0 }
        let remaining = body.byteCount - uploadOffset
        guard remaining > 0 else { return 0 }
        let wanted = Int(min(remaining, Int64(buffer.count)))
        do {
            let count = try unsafe body.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]),
                at: uploadOffset)
            precondition(count <= wanted, "a body source reads no more than was asked for")
            // Anything else than aborting would leave the peer waiting for the announced length.
            guard count > 0 else {
                failure = exchange.error(
                    .bodyReadFailed, "the body ended at \(uploadOffset) of \(body.byteCount)")
                return Int(CURL_READFUNC_ABORT)
            }
            uploadOffset += Int64(count)
            return count
        } catch {
            failure = exchange.error(
                .bodyReadFailed, "reading the body failed at \(uploadOffset)", cause: error)
            return Int(CURL_READFUNC_ABORT)
        }
    }

    /// libcurl wants to start the body over, as it does when a kept connection turns out to be dead.
    /// Refused once any of it was handed out: the caller decides what to send again.
    ///
    /// - Returns: False when it is refused; the transfer then fails with `sendFailed`.
    func rewindBody(to offset: Int64) -> Bool {
        offset == uploadOffset
    }

    /// Hears libcurl's own count of bytes written to the connection.
    ///
    /// When a kept connection dies under a body, libcurl counts from zero again before it asks to start the
    /// body over. What went out went out.
    func noteSent(_ byteCount: Int64) {
        guard byteCount > sentByteCount else { return }
        sentByteCount = byteCount
        hasMoved = true
        request.onBytesSent?(byteCount)
    }
}
