import CCurl
import KedgeTransport

/// Runs all transfers of one client. It never leaves the curl thread.
struct TransferDriver: ~Copyable {
    /// Longest time to receive the rest of an unread response.
    private static let discardTimeout = Duration.seconds(2)
    /// Longest wait of one round, in case a wake-up is missed.
    private static let longestWait = Duration.seconds(10)
    /// Longest wait of one round where a changed limit must take effect soon.
    private static let limitedWait = Duration.milliseconds(500)

    private let configuration: CurlClient.Configuration
    private let multi: MultiHandle
    private let clock = ContinuousClock()
    /// The transfers that libcurl holds, by the identity of their exchange.
    private var transfers: [ObjectIdentifier: ActiveTransfer] = [:]
    /// Exchanges that wait for a running transfer to end.
    private var line: ConnectionQueue
    /// The rates that each transfer was given last, and among how many they were divided.
    private var sharedRates = SharedRates()
    private var share = BandwidthRates()

    private struct SharedRates: Equatable {
        var rates = BandwidthRates()
        var sendingCount = 0
        var receivingCount = 0
    }

    init?(configuration: CurlClient.Configuration) {
        guard let multi = MultiHandle() else { return nil }
        self.configuration = configuration
        self.multi = multi
        self.line = ConnectionQueue(
            maxConnectionsPerOrigin: configuration.maxConnectionsPerHost)
    }

    var waker: MultiHandle.Waker { multi.waker }

    mutating func execute(_ command: CurlLoop.Command) {
        switch command {
        case .start(let request, let exchange):
            start(request, exchange)
        case .resume(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else { return }
            let result = transfer.resume()
            if result != CURLE_OK { finish(transfer, transfer.error(for: result)) }
        case .cancel(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else {
                return line.remove(exchange)
            }
            finish(transfer, nil)
        case .discardBody(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else { return }
            discardBody(of: transfer)
        }
    }

    /// Runs one round: moves and ends transfers, then waits for the next event.
    mutating func drive() {
        shareBandwidth()
        releaseHeld()
        check(multi.perform())
        // Finished transfers come first; `finish` flushes the bytes that they still hold.
        while let (transfer, result) = multi.nextFinished() {
            finish(transfer, transfer.error(for: result))
        }
        let now = clock.now
        for entry in line.removeExpired(now: now) {
            entry.exchange.end(entry.exchange.error(.timedOut, "no connection became free"))
        }
        let longest = configuration.bandwidth == nil ? Self.longestWait : Self.limitedWait
        var wait = min(line.nextDeadline.map { $0 - now } ?? longest, longest)
        for transfer in transfers.values {
            transfer.flush()
            if let error = transfer.checkClock(now: now) {
                finish(transfer, error)
            } else if let nextCheck = transfer.nextCheck {
                wait = min(wait, nextCheck - now)
            }
        }
        check(multi.poll(timeoutMilliseconds: Int32(wait.wholeMilliseconds)))
    }

    /// Divides the limits among the transfers, whenever those or the limits have changed.
    private mutating func shareBandwidth() {
        guard let limit = configuration.bandwidth else { return }
        let sendingCount = transfers.values.count { $0.sendsBody }
        let now = SharedRates(
            rates: limit(), sendingCount: sendingCount,
            receivingCount: transfers.count - sendingCount)
        guard now != sharedRates else { return }
        sharedRates = now
        share = BandwidthRates(
            upload: now.rates.upload.map { max(1, $0 / Int64(max(1, now.sendingCount))) },
            download: now.rates.download.map { max(1, $0 / Int64(max(1, now.receivingCount))) })
        for transfer in transfers.values { transfer.setRates(share, now: clock.now) }
    }

    /// Continues the transfers that their rates have held for long enough.
    private mutating func releaseHeld() {
        guard configuration.bandwidth != nil else { return }
        let now = clock.now
        for transfer in transfers.values {
            let result = transfer.releaseHeld(now: now)
            if result != CURLE_OK { finish(transfer, transfer.error(for: result)) }
        }
    }

    /// Ends every exchange.
    mutating func finishAll(_ code: CurlError.Code, _ detail: String) {
        for entry in line.removeAllWaiting() {
            entry.exchange.end(entry.exchange.error(code, detail))
        }
        for transfer in transfers.values {
            finish(transfer, transfer.exchange.error(code, detail))
        }
    }

    private mutating func start(_ request: TransportRequest, _ exchange: Exchange) {
        guard !exchange.hasEnded else { return }
        let entry = ConnectionQueue.Entry(
            request: request, exchange: exchange,
            deadline: request.timeout.map { clock.now + $0 })
        if line.enter(entry) { begin(entry) }
    }

    /// Starts an admitted exchange. If that fails, the next one in the queue starts.
    private mutating func begin(_ entry: ConnectionQueue.Entry) {
        var turn: ConnectionQueue.Entry? = entry
        while let entry = turn {
            guard let error = add(entry) else { return }
            entry.exchange.end(error)
            turn = line.leave(entry.exchange.origin)
        }
    }

    private mutating func add(_ entry: ConnectionQueue.Entry) -> CurlError? {
        let exchange = entry.exchange
        do {
            let transfer = try ActiveTransfer(entry, configuration: configuration, now: clock.now)
            // The counts may stay the same when one transfer takes another's place.
            if configuration.bandwidth != nil { transfer.setRates(share, now: clock.now) }
            let result = multi.add(transfer)
            guard result == CURLM_OK else {
                return exchange.error(.internalError, Self.text(result))
            }
            transfers[ObjectIdentifier(exchange)] = transfer
            return nil
        } catch {
            let before = CurlFailure.Progress(hasRequestBegun: false, hasResponseHead: false)
            return CurlError(
                CurlFailure.code(for: error.result, after: before), for: exchange.subject,
                curlCode: Int32(error.result.rawValue), detail: error.detail)
        }
    }

    /// Removes the transfer from libcurl, then ends its exchange. Every transfer ends here.
    private mutating func finish(_ transfer: ActiveTransfer, _ error: CurlError?) {
        multi.remove(transfer)
        transfers[ObjectIdentifier(transfer.exchange)] = nil
        transfer.flush()
        transfer.exchange.end(error)
        if let next = line.leave(transfer.exchange.origin) { begin(next) }
    }

    private mutating func discardBody(of transfer: ActiveTransfer) {
        guard transfer.isWorthFinishing else {
            return finish(
                transfer, transfer.exchange.error(.cancelled, "the response body was dropped"))
        }
        let limit = clock.now + Self.discardTimeout
        transfer.deadline = transfer.deadline.map { min($0, limit) } ?? limit
    }

    /// Ends all exchanges when the multi handle fails: out of memory, it is not reliable any more.
    private mutating func check(_ result: CURLMcode) {
        guard result != CURLM_OK else { return }
        finishAll(.internalError, Self.text(result))
    }

    private static func text(_ result: CURLMcode) -> String {
        unsafe String(cString: curl_multi_strerror(result))
    }
}
