/// The cost of credentials: clients with a token or a link beside anonymous ones, and the answers
/// about ids of other owners.
struct AuthCost {
    private let bench: Bench
    /// Nil where no script issues tokens.
    private let issuer: Issuer?

    /// Number of sessions and files of another owner, which are asked for in turn.
    private static let foreignCount = 100
    private static let digits = Array("0123456789abcdef")

    /// The kind of credential of a client.
    private enum Kind: CaseIterable {
        case anonymous
        case token
        /// A JSON Web Token that the server has verified before.
        case jwt
        case link
    }

    /// A running server, and the fields of requests that it accepts.
    private struct Service {
        let server: KedgeServer
        let fields: [String]
    }

    static func measure(_ bench: Bench) throws -> Measured {
        let issuer = try bench.settings.identityScripts.map { scripts in
            try Issuer(bench, scripts: scripts, tokenCount: 1 + bench.scale.newTokenCount)
        }
        let auth = AuthCost(bench: bench, issuer: issuer)
        var measured = Measured(
            rows: try auth.sessions() + auth.uploads() + auth.answersAboutForeignIDs())
        if let issuer {
            measured.rows.append(try auth.verification(issuer))
            try issuer.stop()
        } else {
            measured.notes = ["JSON Web Tokens are not measured: --identity names no scripts"]
        }
        return measured
    }

    private func service(for kind: Kind) throws -> Service {
        let required = KedgeServer.requiringCredentials
        let service: Service
        switch (kind, issuer) {
        case (.anonymous, _):
            service = Service(server: try KedgeServer(bench), fields: [])
        case (.jwt, let issuer?):
            service = Service(
                server: try KedgeServer(bench, options: required + issuer.serverOptions),
                fields: [KedgeServer.field(issuer.tokens[0])])
        case (.token, _), (.link, _), (.jwt, nil):
            let server = try KedgeServer(bench, options: required)
            service = Service(server: server, fields: [try server.makeToken(bench)])
        }
        try service.server.waitUntilAccepted(fields: service.fields)
        return service
    }

    // MARK: Transfers

    /// Runs each kind once a round, in an order that changes from round to round.
    private func alternate(_ kinds: [Kind], _ body: (Kind) throws -> Void) rethrows {
        for round in 0..<bench.scale.runs {
            for kind in round.isMultiple(of: 2) ? kinds : kinds.reversed() {
                bench.scratch.settle()
                try body(kind)
            }
        }
    }

    private func sessions() throws -> [Row] {
        let contents = try SmallSessions.contents(bench, bench.scale.parallelSessionCount)
        var rates: [Kind: [Double]] = [:]
        try alternate(Kind.allCases.filter { $0 != .jwt || issuer != nil }) { kind in
            rates[kind, default: []].append(try rate(of: contents, kind))
        }
        let peer = Series(name: "anonymous", values: rates[.anonymous] ?? [])
        let title = "sessions of 10 KiB, \(bench.scale.parallelConnectionCount) conn."
        let kinds: [(Kind, String, String)] = [
            (.token, "auth-token", "by token"), (.jwt, "auth-jwt", "by known JWT"),
            (.link, "auth-link", "by link"),
        ]
        return kinds.compactMap { kind, id, name in
            rates[kind].map { Row("\(id).rate", "\(title), \(name)", .perSecond, $0, peer: peer) }
        }
    }

    private func rate(of contents: [Content], _ kind: Kind) throws -> Double {
        let service = try service(for: kind)
        // The backend of an application makes the links: with its token, and before the uploads.
        let links =
            kind == .link
            ? try service.server.makePutLinks(contents.count, fields: service.fields) : []
        let rate = try SmallSessions.rate(
            contents, to: service.server, connectionCount: bench.scale.parallelConnectionCount,
            fields: kind == .link ? [] : service.fields, links: links)
        try service.server.discard()
        return rate
    }

    private func uploads() throws -> [Row] {
        let content = try Content(
            bench.source, byteCount: bench.scale.rawByteCount,
            chunkByteCount: bench.scale.chunkByteCount)
        let digest = try bench.source.digest(at: 0, byteCount: content.byteCount)
        var samples: [Kind: [TransferSample]] = [:]
        try alternate([.anonymous, .token]) { kind in
            let service = try service(for: kind)
            samples[kind, default: []].append(
                try RawUpload.sample(
                    of: content, digest: digest, to: service.server, connectionCount: 4,
                    fields: service.fields))
            try service.server.discard()
        }
        return (samples[.token] ?? []).rows(
            "auth-upload", "upload, 4 conn., by token",
            peer: ("anonymous", samples[.anonymous] ?? []))
    }

    // MARK: Single requests

    /// Compares requests with tokens that the server sees for the first time and with one that it
    /// knows. The difference of the medians is the cost of a verification.
    private func verification(_ issuer: Issuer) throws -> Row {
        let service = try service(for: .jwt)
        let connection = try service.server.connect()
        func ask(_ token: String) throws -> Double {
            try milliseconds(
                of: "/me", fields: [KedgeServer.field(token)], status: 200, on: connection)
        }
        var new: [Double] = []
        var known: [Double] = []
        for token in issuer.tokens.dropFirst() {
            new.append(try ask(token))
            known.append(try ask(issuer.tokens[0]))
        }
        try service.server.discard()
        return Row(
            "auth-jwt.verification", "verification of a new JWT, RS256", .milliseconds,
            [Series.median(of: new) - Series.median(of: known)])
    }

    /// Compares the times of answers about sessions and files of another owner with those about
    /// unknown ids: a difference would show which ids exist.
    private func answersAboutForeignIDs() throws -> [Row] {
        let server = try KedgeServer(bench, options: KedgeServer.requiringCredentials)
        let connection = try server.connect(fields: [try server.makeToken(bench)])
        let owner = try server.connect(fields: [try server.makeToken(bench, owner: "other")])
        let contents = try SmallSessions.contents(bench, Self.foreignCount)
        let sessions = try contents.map { try UploadSession.create(for: $0, on: owner).id }
        let files = try contents.map { content in
            let session = try UploadSession.create(for: content, on: owner)
            try session.put(0, on: owner)
            return try session.finalize(on: owner).remoteFileId
        }
        let rows = [
            try compare("session", sessions, on: connection) { "/uploads/sessions/\($0)" },
            try compare("file", files, on: connection) { "/files/\($0)/meta" },
        ]
        try server.discard()
        return rows
    }

    private func compare(
        _ name: String, _ foreign: [String], on connection: BenchConnection,
        path: (String) -> String
    ) throws -> Row {
        let unknown = foreign.map { _ in
            String((0..<32).map { _ in Self.digits[Int.random(in: Self.digits.indices)] })
        }
        let paths = [foreign.map(path), unknown.map(path)]
        var times: [[Double]] = [[], []]
        for number in 0..<bench.scale.foreignAskCount {
            // Each kind is as often the first of two.
            for kind in number.isMultiple(of: 2) ? [0, 1] : [1, 0] {
                times[kind].append(
                    try milliseconds(
                        of: paths[kind][number % foreign.count], status: 404, on: connection))
            }
        }
        return Row(
            "auth-foreign-\(name).time", "404 for a \(name) of another owner", .milliseconds,
            [Series.median(of: times[0])],
            peer: Series(name: "unknown id", values: [Series.median(of: times[1])]))
    }

    private func milliseconds(
        of path: String, fields: [String] = [], status: Int, on connection: BenchConnection
    ) throws -> Double {
        try elapsedSeconds {
            _ = try connection.request("GET", path, fields: fields)
                .require(status, of: "GET \(path)")
        } * 1000
    }
}
