import CCurl
import HTTPTypes
import KedgeTransport

/// One transfer on the curl thread: the state that libcurl's callbacks read and write.
///
/// Made, used and freed on that thread alone, hence not `Sendable`. The caller's side is its
/// ``Exchange``. ``MultiHandle`` keeps the transfer alive while libcurl points to it.
final class ActiveTransfer {
    /// Received bytes that are gathered before the reader gets them, unless the round ends first.
    /// libcurl hands out 16 KiB at a time; waking a task for each would cost more than moving the
    /// bytes.
    private static let flushByteCount = 256 * 1024

    /// Size up to which a server is expected to read a body, even one that it refuses.
    private static let smallBodyByteCount: Int64 = 64 * 1024

    let exchange: Exchange
    let easy: EasyHandle
    let request: TransportRequest
    let stallTimeout: Duration

    /// Time at which the transfer times out. Brought forward when the response is being discarded.
    var deadline: ContinuousClock.Instant?
    /// A failure found by a callback; libcurl only reports an aborted transfer.
    private(set) var failure: CurlError?
    private(set) var progress = CurlFailure.Progress(
        hasRequestBegun: false, hasResponseHead: false)
    private(set) var isPaused = false

    private var sending: RateAllowance
    private var receiving: RateAllowance
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
        _ entry: ConnectionQueue.Entry, configuration: CurlClient.Configuration,
        now: ContinuousClock.Instant
    ) throws(EasyHandle.Refusal) {
        self.exchange = entry.exchange
        self.request = entry.request
        self.stallTimeout = request.stallTimeout ?? configuration.stallTimeout
        self.deadline = entry.deadline
        self.head = ResponseHeadParser(maxByteCount: configuration.maxResponseHeaderBytes)
        self.lastMove = now
        self.sending = RateAllowance(at: now)
        self.receiving = RateAllowance(at: now)
        self.easy = try EasyHandle.make(for: request, configuration: configuration)
        try installCallbacks()
    }

    /// Translates libcurl's result. A failure that a callback found first takes precedence.
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
    /// Time of the next call to ``checkClock(now:)`` or ``releaseHeld(now:)``; nil while only
    /// events can move the transfer.
    var nextCheck: ContinuousClock.Instant? {
        [timeLimit, sending.releaseTime, receiving.releaseTime].compactMap { $0 }.min()
    }

    /// Time at which the transfer times out, unless it moves before.
    private var timeLimit: ContinuousClock.Instant? {
        // Before the request begins, the connect timeout applies. While the transfer is paused or
        // held by its rate, the silence is our own doing.
        guard progress.hasRequestBegun, !isPaused, !sending.isHeld, !receiving.isHeld else {
            return deadline
        }
        let stalledAt = lastMove + stallTimeout
        return deadline.map { min($0, stalledAt) } ?? stalledAt
    }

    /// Notes movement since the last round. Returns an error when the transfer has timed out.
    func checkClock(now: ContinuousClock.Instant) -> CurlError? {
        if hasMoved {
            hasMoved = false
            lastMove = now
        }
        guard let timeLimit, now >= timeLimit else { return nil }
        if let deadline, now >= deadline {
            return exchange.error(.timedOut, "the exchange took longer than allowed")
        }
        return exchange.error(.stalled, "no byte in either direction for \(stallTimeout)")
    }

    /// Whether the rest of an unread response is short enough to receive it and keep the
    /// connection.
    var isWorthFinishing: Bool {
        let remaining = (expectedByteCount ?? 0) - receivedByteCount
        return !isPaused && uploadOffset >= (request.body?.byteCount ?? 0)
            && remaining <= Int64(Exchange.discardLimitByteCount)
    }
}

// MARK: - Rates

extension ActiveTransfer {
    /// Limits the rates; they take effect at once.
    func setRates(_ rates: BandwidthRates, now: ContinuousClock.Instant) {
        sending.setRate(rates.upload, at: now)
        receiving.setRate(rates.download, at: now)
    }

    /// Continues the directions that their rates have held for long enough. The write callback runs
    /// within this call, and its rate may hold it again.
    func releaseHeld(now: ContinuousClock.Instant) -> CURLcode {
        let isSendingReleased = sending.release(at: now)
        let isReceivingReleased = receiving.release(at: now)
        guard isSendingReleased || isReceivingReleased else { return CURLE_OK }
        hasMoved = true
        return pauseOrResume()
    }

    private func pauseOrResume() -> CURLcode {
        easy.pause(receiving: isPaused || receiving.isHeld, sending: sending.isHeld)
    }
}

// MARK: - Receiving

extension ActiveTransfer {
    /// Takes one line of a header block. Returns the count taken, or 0 to abort.
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

    /// Forbids reuse of a connection after an early refusal. The server may keep the connection and
    /// never read the rest of the body. If the rest fits the socket's buffer, libcurl takes it for
    /// sent, and the next request would wait behind it.
    private func refuseDoubtfulReuse(after response: HTTPResponse) {
        guard response.status.code >= 300,
            request.body?.byteCount ?? 0 > Self.smallBodyByteCount
        else { return }
        easy.forbidReuse()
    }

    /// Whether it has a body to send.
    var sendsBody: Bool { request.body?.byteCount ?? 0 > 0 }

    /// Takes body bytes. Returns the count taken, or a value that makes libcurl pause or abort.
    func receiveBody(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        hasMoved = true
        if isUnwanted {
            failure = exchange.error(.cancelled, "the response was declined")
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
        guard receiving.takeAll(bytes.count, at: .now) else {
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if staging.count + bytes.count > Self.flushByteCount { flush() }
        if staging.isEmpty { reserveStaging() }
        unsafe staging.append(contentsOf: bytes)
        receivedByteCount += Int64(bytes.count)
        return bytes.count
    }

    /// Reserves memory for one flush, or for the rest of a shorter body.
    private func reserveStaging() {
        let left = expectedByteCount.map { max($0 - receivedByteCount, 0) } ?? .max
        staging.reserveCapacity(Int(min(left, Int64(Self.flushByteCount))))
    }

    /// Delivers the gathered bytes to the reader.
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

    /// Continues after a pause. The write callback runs within this call and may pause again.
    func resume() -> CURLcode {
        guard isPaused else { return CURLE_OK }
        isPaused = false
        hasMoved = true
        return pauseOrResume()
    }
}

// MARK: - Sending

extension ActiveTransfer {
    /// Notes that the connection is made and that the request is about to be written.
    func beginRequest() {
        progress.hasRequestBegun = true
        hasMoved = true
    }

    /// Fills libcurl's upload buffer. Returns the count filled, or a value that makes libcurl pause
    /// or abort.
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let body = request.body else { return 0 }
        let remaining = body.byteCount - uploadOffset
        guard remaining > 0 else { return 0 }
        let wanted = sending.take(upTo: Int(min(remaining, Int64(buffer.count))), at: .now)
        guard wanted > 0 else { return Int(CURL_READFUNC_PAUSE) }
        do {
            let count = try unsafe body.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]),
                at: uploadOffset)
            precondition(count <= wanted, "a body source reads no more than was asked for")
            // Without an abort the peer would wait for the announced length.
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

    /// Answers libcurl's request to start the body over, as after a kept connection turned out
    /// dead.
    ///
    /// - Returns: False once any of the body was handed out. The transfer then fails with
    ///   `sendFailed`, and the caller decides what to send again.
    func rewindBody(to offset: Int64) -> Bool {
        offset == uploadOffset
    }

    /// Takes libcurl's count of bytes written to the connection. The reported count never falls,
    /// but libcurl's does: when a kept connection dies under a body, it restarts at zero.
    func noteSent(_ byteCount: Int64) {
        guard byteCount > sentByteCount else { return }
        sentByteCount = byteCount
        hasMoved = true
        request.onBytesSent?(byteCount)
    }
}
