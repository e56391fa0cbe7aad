internal import ArgumentParser
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeModel
internal import KedgeSecrets
internal import KedgeServer

/// `kedge key`
struct Key: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rotate, list and revoke the keys that sign the links of a service.",
        discussion: """
            A service with identity.mode tokens makes its first key by itself. The keys are \
            derived from the master key file of the service; the database has no secret. With \
            PostgreSQL, the service may be running. With SQLite, stop it first; exit status 10 \
            says that it runs.

            Settings are those of kedge serve: flags override KEDGE_* variables, which override \
            the file.
            """,
        subcommands: [Rotate.self, List.self, Revoke.self])

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a key that signs links from now on.",
            discussion: """
                Links of the keys before it stay valid for the overlap, or until they expire. \
                Running services use the new key within half a minute.
                """)
        @Option(
            help: ArgumentHelp(
                "Time for which links of the keys before it stay valid.", valueName: "time"))
        var overlap = "30d"
        @Option(
            help: "\(ConfigurationKey.masterKeyFile.summary)", completion: .file())
        var secretsMasterKeyFile: String?
        @Flag(help: "Write one JSON object with the new key.") var json = false
        @OptionGroup var options: TokenOptions

        /// Time for which the keys before it still sign, until all nodes have read the new one.
        private static let signingOverlap = SigningKeys.cacheLifetime + SigningKeys.settlingTime

        func validate() throws { _ = try overlapTime() }

        func run() async throws {
            let overlap = try overlapTime()
            let opening = try await options.opening(
                mayCreate: false, masterKeyFile: secretsMasterKeyFile)
            let key = try await opening.use { store, clock in
                let now = clock.now()
                let masters = try await checked {
                    try await SigningKeys.masterKeys(
                        in: opening.configuration.masterKeyFile(), of: store, at: now,
                        on: opening.pool)
                }
                let key = SigningKeyRecord(
                    id: LinkKey.randomID(), masterFingerprint: masters.first.fingerprint,
                    createdAt: now)
                let earlier = try await store.signingKeys().filter { $0.verifies(at: now) }
                try await store.insert(key)
                for old in earlier {
                    _ = try await store.updateSigningKey(
                        old.id, signsUntil: now.advanced(by: min(Self.signingOverlap, overlap)),
                        verifiesUntil: now.advanced(by: overlap))
                }
                return key
            }
            guard !json else {
                return StandardOutput.write(JSONLine.encode(VersionedLine(value: KeyLine(key))))
            }
            StandardError.write("Key \(key.id) signs links from now on.\n")
        }

        private func overlapTime() throws -> Duration {
            // A hundred years. Larger values would only overflow in arithmetic.
            guard let seconds = Quantity.seconds(overlap), (0...3_153_600_000).contains(seconds)
            else { throw ValidationError("--overlap must be a time such as 12h or 30d.") }
            return .seconds(seconds)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys, newest first.", aliases: ["ls"])
        @Flag(help: "Write one JSON object per line.") var json = false
        @OptionGroup var options: TokenOptions

        func run() async throws {
            let (keys, now) = try await options.opening(mayCreate: false).use { store, clock in
                (try await store.signingKeys(), clock.now())
            }
            guard !json else {
                for key in keys.reversed() {
                    StandardOutput.write(JSONLine.encode(VersionedLine(value: KeyLine(key))))
                }
                return
            }
            var table = TextTable([
                ("ID", .left), ("MASTER KEY", .left), ("CREATED", .left), ("STATE", .left),
            ])
            for key in keys.reversed() {
                table.add([
                    key.id, key.masterFingerprint, key.createdAt.description,
                    Self.state(of: key, at: now),
                ])
            }
            StandardOutput.write(table.text)
        }

        private static func state(of key: SigningKeyRecord, at now: Timestamp) -> String {
            guard key.verifies(at: now) else { return "ended" }
            guard let end = key.verifiesUntil else { return "signs" }
            return "verifies until \(end)"
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a key, and with it all links that it has signed.",
            discussion: """
                A running service refuses the links after ten seconds at the latest. If no other \
                key signs, the service makes a new one.
                """)
        @Argument(help: "Id of the key.") var id: String
        @Flag(help: "Write one JSON object with the key.") var json = false
        @OptionGroup var options: TokenOptions

        func validate() throws {
            guard LinkKey.isWellFormed(id) else {
                throw ValidationError("The id of a key has 1 to 32 letters and digits.")
            }
        }

        func run() async throws {
            let key = try await options.opening(mayCreate: false).use { store, clock in
                let now = clock.now()
                _ = try await store.updateSigningKey(id, signsUntil: now, verifiesUntil: now)
                return try await store.signingKeys().first { $0.id == id }
            }
            guard let key else {
                throw CommandFailure(
                    "kedge: there is no key \(id)", exitStatus: ExitStatus.notFound)
            }
            guard !json else {
                return StandardOutput.write(JSONLine.encode(VersionedLine(value: KeyLine(key))))
            }
            StandardError.write("Key \(id) is revoked, and so are all links that it has signed.\n")
        }
    }
}

/// A key as an object of `--json`.
private struct KeyLine: Encodable {
    var keyId: String
    var masterFingerprint: String
    var createdAt: Timestamp
    var signsUntil: Timestamp?
    var verifiesUntil: Timestamp?

    init(_ record: SigningKeyRecord) {
        keyId = record.id
        masterFingerprint = record.masterFingerprint
        createdAt = record.createdAt
        signsUntil = record.signsUntil
        verifiesUntil = record.verifiesUntil
    }
}
