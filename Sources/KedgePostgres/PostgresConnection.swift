import CPostgres
internal import Glibc

/// One connection. It belongs to the thread that made it; its calls block that thread, each for a
/// bounded time.
///
/// Statements are unnamed and sent with their parameters, so that a pooler may run each transaction
/// on another server connection. Cancelling goes by closing the socket: PQcancel would connect
/// again, without TLS and without an end to its wait.
@safe final class PostgresConnection {
    private let pointer: OpaquePointer
    /// Longest wait for the end of a statement.
    private let answerTimeout: Duration
    /// Set once an answer did not come in time: the next one might be taken for it.
    private var isAbandoned = false

    /// Connects; blocks at most as long as `connect_timeout` for each host and address.
    init(
        _ parameters: [(keyword: String, value: String)], answerTimeout: Duration
    ) throws(PostgresFailure) {
        guard let pointer = unsafe Self.connect(parameters) else {
            throw PostgresFailure(kind: .lost, text: "libpq has no memory for a connection")
        }
        unsafe self.pointer = pointer
        self.answerTimeout = answerTimeout
        guard unsafe PQstatus(pointer) == CONNECTION_OK, unsafe PQsetnonblocking(pointer, 1) == 0
        else { throw PostgresFailure(kind: .lost, text: lastMessage) }
        // Notices would go to the standard error otherwise.
        unsafe PQsetNoticeProcessor(pointer, { _, _ in }, nil)
    }

    deinit { unsafe PQfinish(pointer) }

    /// Runs one statement with parameters.
    ///
    /// - Parameter timeout: Longest wait for its end; nil for the usual one.
    func query(
        _ sql: String, _ values: [PostgresValue] = [], timeout: Duration? = nil
    ) throws(PostgresFailure) -> PostgresResult {
        guard send(sql, values) == 1 else { throw lost() }
        let results = try results(until: .after(timeout ?? answerTimeout))
        guard let result = results.last else {
            throw PostgresFailure(kind: .nonsense, text: "a statement has no answer")
        }
        return result
    }

    /// Runs statements without parameters in one round trip; values in results are text.
    @discardableResult
    func script(_ sql: String, timeout: Duration? = nil) throws(PostgresFailure) -> [PostgresResult]
    {
        guard unsafe PQsendQuery(pointer, sql) == 1 else { throw lost() }
        return try results(until: .after(timeout ?? answerTimeout))
    }

    /// False when the connection broke, also while it was idle.
    var isUsable: Bool {
        guard !isAbandoned, unsafe PQstatus(pointer) == CONNECTION_OK else { return false }
        // An idle server says nothing but good-bye; consuming notices the end of the stream.
        guard wait(for: POLLIN, until: .after(.zero)) else { return true }
        return unsafe PQconsumeInput(pointer) == 1 && PQstatus(pointer) == CONNECTION_OK
    }

    /// Waits until the server sends something by itself; returns the payloads of notifications.
    func notifications(until deadline: Deadline) throws(PostgresFailure) -> [String] {
        _ = wait(for: POLLIN, until: deadline)
        guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        var payloads: [String] = []
        while let notification = unsafe PQnotifies(pointer) {
            payloads.append(unsafe String(cString: notification.pointee.extra))
            unsafe PQfreemem(notification)
        }
        return payloads
    }

    private static func connect(_ parameters: [(keyword: String, value: String)]) -> OpaquePointer?
    {
        // Copies that C can keep for the time of the call.
        let keywords = unsafe parameters.map { unsafe strdup($0.keyword) }
        let values = unsafe parameters.map { unsafe strdup($0.value) }
        defer {
            unsafe release(keywords)
            unsafe release(values)
        }
        let keywordList = unsafe keywords.map { unsafe UnsafePointer($0) } + [nil]
        let valueList = unsafe values.map { unsafe UnsafePointer($0) } + [nil]
        return unsafe PQconnectdbParams(keywordList, valueList, 0)
    }

    private static func release(_ texts: [UnsafeMutablePointer<CChar>?]) {
        for index in unsafe texts.indices { unsafe free(texts[index]) }
    }

    private func send(_ sql: String, _ values: [PostgresValue]) -> Int32 {
        // One block for all of them; a pointer into it must not be nil for a value of no bytes.
        let block = values.reduce(into: [UInt8]()) { $0 += $1.bytes ?? [] } + [0]
        return unsafe block.withUnsafeBytes { memory in
            var pointers = unsafe [UnsafePointer<CChar>?]()
            var offset = 0
            for value in values {
                let start = unsafe memory.baseAddress.map { unsafe $0 + offset }
                unsafe pointers.append(
                    value.bytes == nil ? nil : start?.assumingMemoryBound(to: CChar.self))
                offset += value.bytes?.count ?? 0
            }
            return unsafe PQsendQueryParams(
                pointer, sql, Int32(values.count), values.map(\.type), pointers,
                values.map { Int32($0.bytes?.count ?? 0) },
                [Int32](repeating: 1, count: values.count), 1)
        }
    }

    /// Everything that the server answers, read to the end.
    private func results(until deadline: Deadline) throws(PostgresFailure) -> [PostgresResult] {
        try flush(until: deadline)
        var results: [PostgresResult] = []
        while let result = try next(until: deadline) { results.append(result) }
        if let failure = results.lazy.compactMap(\.failure).first {
            // A server that goes says why and hangs up; libpq says the latter in its own words.
            throw unsafe PQstatus(pointer) == CONNECTION_OK || failure.endsConnection
                ? failure : lost()
        }
        return results
    }

    private func next(until deadline: Deadline) throws(PostgresFailure) -> PostgresResult? {
        while unsafe PQisBusy(pointer) == 1 {
            // Not for long at a time: over TLS bytes may wait inside of OpenSSL, where poll(2) does not see them.
            if !wait(for: POLLIN, until: .after(min(deadline.remaining, .milliseconds(250)))) {
                guard !deadline.isOver else { throw late() }
            }
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
        return unsafe PQgetResult(pointer).map { unsafe PostgresResult($0) }
    }

    /// Sends what is buffered. The server may have to be read meanwhile, or both sides would wait.
    private func flush(until deadline: Deadline) throws(PostgresFailure) {
        while true {
            let rest = unsafe PQflush(pointer)
            guard rest != 0 else { return }
            guard rest > 0 else { throw lost() }
            guard wait(for: POLLIN | POLLOUT, until: deadline) else { throw late() }
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
    }

    /// Waits until the socket is ready; false when the time is over first.
    private func wait(for events: Int32, until deadline: Deadline) -> Bool {
        var entry = pollfd(fd: unsafe PQsocket(pointer), events: Int16(events), revents: 0)
        while true {
            let count = unsafe poll(&entry, 1, deadline.remainingMilliseconds)
            if count > 0 { return true }
            // Interrupted: the rest of the time is still ours. Any other error shows when reading.
            if count == 0 || errno != EINTR { return count != 0 }
        }
    }

    private func lost() -> PostgresFailure {
        isAbandoned = true
        return PostgresFailure(kind: .lost, text: lastMessage)
    }

    private func late() -> PostgresFailure {
        isAbandoned = true
        return PostgresFailure(kind: .late, text: "PostgreSQL did not answer in time")
    }

    /// What libpq says of the connection: hosts and reasons, never the password.
    private var lastMessage: String {
        let text = unsafe String(cString: PQerrorMessage(pointer))
        return String(text.split(whereSeparator: \.isNewline).joined(separator: "; "))
    }
}
