internal import KedgeEngine

/// A failure of the connection or of a statement. The text is for logs: it may name hosts and
/// tables, but contains no password and no values.
package struct PostgresFailure: Error {
    enum Kind: Equatable {
        /// The server refused a statement: SQLSTATE, and the violated constraint if any.
        case refused(state: String, constraint: String?)
        /// The connection could not be made, or broke.
        case lost
        /// The server did not answer in time. The connection is unusable, since the answer may
        /// still arrive.
        case late
        /// An answer that makes no sense: a mistake of ours.
        case nonsense
    }

    let kind: Kind
    let text: String

    /// Whether the connection is unusable now.
    ///
    /// PostgreSQL reports it with class 08, and with 57P01 to 57P03 when it shuts down or starts.
    /// 25006 means that the server has become a standby. A standby also refuses unlogged tables and
    /// writing transactions with 0A000; no other statement of ours causes that code.
    var endsConnection: Bool {
        switch kind {
        case .lost, .late: true
        case .nonsense: false
        case .refused(let state, _):
            state.hasPrefix("08") || state.hasPrefix("57P")
                || ["25006", "0A000"].contains(state)
        }
    }

    /// Whether the transaction lost against another one and may succeed in a retry: serialization
    /// failure or deadlock.
    var isConflict: Bool {
        if case .refused(let state, _) = kind { ["40001", "40P01"].contains(state) } else { false }
    }

    /// Whether a row with the same key exists.
    func violatesUnique(_ constraint: String) -> Bool {
        kind == .refused(state: "23505", constraint: constraint)
    }

    /// Whether the server reports that its stored data is damaged.
    var isDamage: Bool {
        if case .refused(let state, _) = kind { state.hasPrefix("XX00") } else { false }
    }
}

extension MetadataError {
    /// Translates any error of an operation.
    init(_ error: any Error) {
        switch error {
        case let error as MetadataError: self = error
        case let error as PostgresFailure: self.init(error)
        default: self = .failed("\(error)")
        }
    }

    private init(_ failure: PostgresFailure) {
        guard case .refused(let state, _) = failure.kind else {
            self = failure.kind == .nonsense ? .failed(failure.text) : .unavailable(failure.text)
            return
        }
        switch state {
        case "53100": self = .full(failure.text)
        // A timeout of a lock or a statement, or repeated conflicts with other transactions.
        case "55P03", "57014", "40001", "40P01": self = .unavailable(failure.text)
        // Class 53: insufficient resources, such as memory or connections.
        case _ where state.hasPrefix("53") || failure.endsConnection:
            self = .unavailable(failure.text)
        default: self = .failed(failure.text)
        }
    }
}
