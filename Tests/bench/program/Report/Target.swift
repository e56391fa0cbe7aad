/// The target of a row.
struct Target: Sendable {
    let row: String
    let condition: Condition
    /// A larger value is a failure, not a number to improve: memory that grows where it must not.
    /// The limit exceeds the target by the code of a debug binary, which the smoke test runs.
    var limit: Double?

    /// The comparison.
    enum Condition: Sendable {
        case ofPeer(atLeast: Double)
        /// The ratio differs from one by less than this.
        case nearPeer(within: Double)
        case ofFloor(atLeast: Double)
        case value(atMost: Double)
    }

    func isMet(by row: Row) -> Bool {
        switch condition {
        case .ofPeer(let least): row.ratio.map { $0 >= least } ?? false
        case .nearPeer(let bound): row.ratio.map { abs($0 - 1) < bound } ?? false
        case .ofFloor(let least): row.floorRatio.map { $0 >= least } ?? false
        case .value(atMost: let most): row.ours.median <= most
        }
    }

    var text: String {
        switch condition {
        case .ofPeer(let least): ">= \(least) x peer"
        case .nearPeer(let bound): "< \(Int((bound * 100).rounded())) % from peer"
        case .ofFloor(let least): ">= \(least) x floor"
        case .value(atMost: let most): "<= \(most.formatted)"
        }
    }

    /// Every target, by row. The units of bounds are those of their rows.
    static let all: [Target] = local + links("up") + links("down")

    private static let local: [Target] = [
        Target(row: "binary.size", condition: .value(atMost: 57.2)),
        Target(row: "binary.version", condition: .value(atMost: 20)),
        Target(row: "binary.start", condition: .value(atMost: 50)),
        Target(row: "upload-4.synced", condition: .ofPeer(atLeast: 1.25)),
        Target(row: "upload-4.cpu", condition: .value(atMost: 1.8)),
        Target(row: "tus-1.speed", condition: .ofPeer(atLeast: 0.85)),
        Target(row: "tus-4.speed", condition: .ofPeer(atLeast: 0.85)),
        Target(row: "upload-4.durability", condition: .ofPeer(atLeast: 0.9)),
        Target(row: "kedge-upload.speed", condition: .ofFloor(atLeast: 0.85)),
        Target(row: "kedge-upload.client-memory", condition: .value(atMost: 40)),
        Target(row: "download-null.speed", condition: .ofPeer(atLeast: 0.95)),
        Target(row: "download-file.speed", condition: .ofPeer(atLeast: 0.95)),
        Target(row: "kedge-download.speed", condition: .ofFloor(atLeast: 0.8)),
        Target(row: "kedge-download.client-memory", condition: .value(atMost: 40)),
        Target(row: "kedge-upload.memory", condition: .value(atMost: 64), limit: 76),
        Target(row: "kedge-download.memory", condition: .value(atMost: 64), limit: 76),
        Target(row: "small-files.rate", condition: .ofPeer(atLeast: 0.6)),
        Target(row: "finalize-small.time", condition: .value(atMost: 20)),
        Target(row: "finalize-medium.time", condition: .value(atMost: 20)),
        Target(row: "finalize-large.time", condition: .value(atMost: 20)),
        Target(row: "status-whole.time", condition: .value(atMost: 20)),
        Target(row: "status-gaps.time", condition: .value(atMost: 20)),
        Target(row: "status-whole-ranges.time", condition: .value(atMost: 20)),
        Target(row: "status-gaps-ranges.time", condition: .value(atMost: 20)),
        Target(row: "status-whole-ranges.answer", condition: .value(atMost: 4)),
        Target(row: "auth-token.rate", condition: .ofPeer(atLeast: 0.95)),
        Target(row: "auth-jwt.rate", condition: .ofPeer(atLeast: 0.95)),
        Target(row: "auth-link.rate", condition: .ofPeer(atLeast: 0.93)),
        Target(row: "auth-upload.speed", condition: .ofPeer(atLeast: 0.99)),
        Target(row: "auth-jwt.verification", condition: .value(atMost: 0.25)),
        Target(row: "auth-foreign-session.time", condition: .nearPeer(within: 0.03)),
        Target(row: "auth-foreign-file.time", condition: .nearPeer(within: 0.03)),
        Target(row: "quota-creates.rate", condition: .ofPeer(atLeast: 0.85)),
        Target(row: "tls-upload-4.speed", condition: .ofPeer(atLeast: 0.75)),
        Target(row: "tls-download.speed", condition: .ofPeer(atLeast: 0.8)),
        Target(row: "tls-idle.memory", condition: .value(atMost: 64)),
        Target(row: "metrics.time", condition: .value(atMost: 5)),
        Target(row: "idle-connections.memory", condition: .value(atMost: 40), limit: 88),
        Target(row: "slow-uploads.memory", condition: .value(atMost: 96), limit: 200),
        Target(row: "in-flight.memory", condition: .value(atMost: 64), limit: 92),
    ]

    /// Targets of transfers over links, by direction. The peer is one long TCP stream without loss,
    /// from the 12th round trip on, and curl with it.
    private static func links(_ way: String) -> [Target] {
        let roundTrips = ["20ms", "100ms", "300ms"]
        let withoutLoss = roundTrips.map {
            Target(row: "links.\($0)-0%.\(way).settled", condition: .ofPeer(atLeast: 0.95))
        }
        let withLoss = roundTrips.map {
            Target(row: "links.\($0)-2%.\(way).speed", condition: .ofPeer(atLeast: 2))
        }
        let dying = ["300KiB", "10s"].map {
            Target(row: "links.20ms-dies-\($0).\(way).delivered", condition: .value(atMost: 1.1))
        }
        let resumption = Target(row: "resume.\(way).time", condition: .value(atMost: 300))
        return withoutLoss + withLoss + dying + [resumption]
    }

    static func of(_ row: Row) -> Target? {
        all.first { $0.row == row.id }
    }
}
