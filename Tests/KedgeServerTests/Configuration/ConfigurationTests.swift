import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeServer
import KedgeTesting
import Testing

/// Settings from flags, environment, file and defaults.
struct ConfigurationTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func load(
        flags: [ConfigurationKey: String] = [:], environment: [String: String] = [:],
        file: String? = nil
    ) async throws -> ConfigurationLoader {
        let path = try file.map { try directory.write($0, to: "kedge.yaml") }
        return try await ConfigurationLoader(flags: flags, environment: environment, file: path)
    }

    /// A value of the key that is not its default.
    private static func other(_ key: ConfigurationKey) -> String {
        switch key {
        case .host: "127.0.0.2"
        case .allowedHosts: "files.example"
        case .allowAnyHost: "on"
        case .data: "/elsewhere/my \"data\""
        case .metadata, .bytes, .logLevel, .logFormat: "other"
        default: "300000"
        }
    }

    /// The setting as YAML.
    private static func yaml(_ key: ConfigurationKey, _ value: String) -> String {
        let quoted = "'\(value)'"
        let parts = key.rawValue.split(separator: ".")
        return parts.count == 1
            ? "\(parts[0]): \(quoted)\n" : "\(parts[0]):\n  \(parts[1]): \(quoted)\n"
    }

    @Test func `the defaults are a valid configuration`() async throws {
        let loader = try await load()
        for key in ConfigurationKey.allCases { #expect(loader.values[key] == key.defaultValue) }
        let configuration = try loader.configuration()
        #expect(configuration.isLoopback)
        #expect(configuration.durability == .on)
        #expect(configuration.engine.chunkSizes == 262_144...67_108_864)
        #expect(configuration.engine.defaultChunkSize == 4 << 20)
        #expect(configuration.engine.maxFileSize == 1 << 40)
        #expect(configuration.idleTimeout == .seconds(60))
        #expect(configuration.drainTimeout == .seconds(10))
    }

    @Test func `the number of connections is unset by default and can be set`() async throws {
        #expect(try await load().configuration().maxConnections == nil)
        let set = try await load(flags: [.maxConnections: "300"]).configuration()
        #expect(set.maxConnections == 300)
    }

    @Test(arguments: [
        ("/tus/, /videos", nil), ("/videos,/videos/", nil), ("/files/more", nil), ("videos", nil),
        ("/up/x", "/up"), ("/tus", "/tus/"), ("/a,,b", nil),
    ])
    func `taken or malformed upload targets are refused`(targets: String, tus: String?) async throws
    {
        var flags = [ConfigurationKey.uploadTargets: targets]
        flags[.tusPath] = tus
        let loader = try await ConfigurationLoader(flags: flags, environment: [:], file: nil)
        #expect(throws: ConfigurationError.self) { try loader.configuration() }
    }

    @Test(arguments: ConfigurationKey.allCases)
    func `a flag beats the environment, which beats the file`(
        key: ConfigurationKey
    ) async throws {
        let file = Self.yaml(key, Self.other(key) + "1")
        let environment = [key.environmentName: Self.other(key) + "2"]
        let flags = [key: Self.other(key) + "3"]
        #expect(try await load(file: file).values[key] == Self.other(key) + "1")
        #expect(
            try await load(environment: environment, file: file).values[key]
                == Self.other(key) + "2")
        #expect(
            try await load(flags: flags, environment: environment, file: file).values[key]
                == Self.other(key) + "3")
        #expect(
            try await load(flags: flags, file: file).values[key] == Self.other(key) + "3")
    }

    @Test(arguments: ConfigurationKey.allCases)
    func `one setting leaves the others as they are`(key: ConfigurationKey) async throws {
        let loader = try await load(environment: [key.environmentName: Self.other(key)])
        for other in ConfigurationKey.allCases where other != key {
            #expect(loader.values[other] == other.defaultValue)
        }
    }

    @Test(arguments: ConfigurationKey.allCases)
    func `the variable of a setting is named like its flag`(key: ConfigurationKey) {
        #expect(
            key.environmentName
                == "KEDGE_"
                + key.flagName.split(separator: "-").map { $0.uppercased() }
                .joined(separator: "_"))
        #expect(key.flagName == key.flagName.lowercased())
        #expect(!key.summary.isEmpty)
    }

    @Test func `long setting names are split into words`() {
        #expect(ConfigurationKey.minBodyRate.flagName == "timeouts-min-body-bytes-per-second")
        #expect(
            ConfigurationKey.minBodyRate.environmentName
                == "KEDGE_TIMEOUTS_MIN_BODY_BYTES_PER_SECOND")
    }

    @Test func `numbers in a file need no quotes`() async throws {
        let loader = try await load(file: "port: 9000\nlimits:\n  maxFileSize: 12345\n")
        let configuration = try loader.configuration()
        #expect(configuration.port == 9000)
        #expect(configuration.engine.maxFileSize == 12_345)
    }

    @Test(arguments: SHA256PairPath.allCases)
    func `instructions for SHA-256 are chosen among those of the processor`(
        path: SHA256PairPath
    ) async throws {
        let loader = try await load(flags: [.hashPath: path.rawValue])
        if path.isSupported {
            #expect(try loader.configuration().hashPath == path)
        } else {
            #expect(throws: ConfigurationError.self) { try loader.configuration() }
        }
    }

    /// Older readers of YAML take unquoted `on` and `off` for truth values; Kedge keeps the words.
    @Test(arguments: [("on", .on), ("off", .off)] as [(String, Durability)])
    func `durability is on or off`(word: String, durability: Durability) async throws {
        for file in ["durability: \(word)\n", "durability: '\(word)'\n"] {
            #expect(try await load(file: file).configuration().durability == durability)
        }
        let loader = try await load(flags: [.durability: word])
        #expect(try loader.configuration().durability == durability)
    }

    @Test(arguments: [
        "prot: 1\n", "limits:\n  maxFilesize: 1\n", "limits:\n  max:\n    fileSize: 1\n",
        "limits: 5\n", "port: [1]\n", "port:\n  x: 1\n", "Port: 1\n", "- port\n", "port\n",
        "x: &a 1\nport: *a\n", "? [a]\n: 1\n",
    ])
    func `a file with an unknown key is refused`(file: String) async {
        await #expect(throws: ConfigurationError.self) { _ = try await self.load(file: file) }
    }

    @Test(arguments: ["port: 1\nport: 2\n", "a: b: c\n", "port: \"1\n", "port: 1\n---\nport: 2\n"])
    func `a file that is not one YAML mapping is refused`(file: String) async {
        await #expect(throws: ConfigurationError.self) { _ = try await self.load(file: file) }
    }

    @Test func `a missing file is refused`() async {
        let path = directory.path + "/nowhere.yaml"
        await #expect(throws: ConfigurationError.self) {
            _ = try await ConfigurationLoader(flags: [:], environment: [:], file: path)
        }
    }

    /// The message goes to a terminal or a log, where a line break would start another message.
    @Test(arguments: [
        "port: [1\n  - x: {\n", "port: \"1\n", "a: b: c\n", "port: 1\nport: 2\n", "\u{1}\n",
        "port: 1\n---\nport: 2\n", "prot: 1\n", "\"a\\nb\": 1\n",
    ])
    func `a mistake in a file is reported in one line`(file: String) async throws {
        let error = await #expect(throws: ConfigurationError.self) {
            _ = try await self.load(file: file)
        }
        #expect(error.map { !$0.description.contains(where: \.isNewline) } == true)
    }

    @Test(arguments: [
        ("host: x\nlimits:\n  maxFileSiz: 1\n", ":3: limits.maxFileSiz", "limits.maxFileSize?"),
        ("limits:\nport: 1\n", ":1: limits is a group", ""), ("prot: 1\n", ":1: prot", "port?"),
        ("port:\n  - 1\n", ":1: port takes one value", ""),
        ("\nport: x\n", ":2 sets \"x\"", "port"),
        ("log:\n  level: inf\n", ":2 sets \"inf\"", "log.level"),
    ])
    func `a mistake in a file names its line and the nearest setting`(
        file: String, place: String, name: String
    ) async throws {
        let error = await #expect(throws: ConfigurationError.self) {
            _ = try await self.load(file: file).configuration()
        }
        let text = try #require(error?.description)
        #expect(text.contains("kedge.yaml\(place)"))
        #expect(text.contains(name))
    }

    @Test func `a wrong value names the flag or variable that sets it`() async throws {
        for (flags, environment, place) in [
            ([ConfigurationKey.port: "x"], [:], "--port sets \"x\""),
            ([:], ["KEDGE_LIMITS_MAX_FILE_SIZE": "1y"], "KEDGE_LIMITS_MAX_FILE_SIZE sets \"1y\""),
        ] as [([ConfigurationKey: String], [String: String], String)] {
            let error = await #expect(throws: ConfigurationError.self) {
                _ = try await self.load(flags: flags, environment: environment).configuration()
            }
            #expect(error?.description.contains(place) == true)
        }
    }

    @Test func `an unreadable file is reported in one line with its path`() async throws {
        let latin = try directory.write([0x61, 0x3A, 0x20, 0xE9], to: "latin.yaml")
        for path in [directory.path + "/nowhere.yaml", directory.path, latin, ""] {
            let error = await #expect(throws: ConfigurationError.self) {
                _ = try await ConfigurationLoader(flags: [:], environment: [:], file: path)
            }
            let text = try #require(error?.description)
            #expect(text.contains(path) && !text.contains(where: \.isNewline))
            #expect(!text.contains("Domain") && !text.contains("Error"))
        }
    }

    @Test(arguments: ["", "# port: 9000\n"])
    func `a file without settings leaves the defaults`(file: String) async throws {
        let loader = try await self.load(file: file)
        #expect(loader.values[.port] == ConfigurationKey.port.defaultValue)
    }

    @Test(arguments: ["KEDGE_PROT", "KEDGE_LIMITS_MAXFILESIZE", "KEDGE_", "KEDGE_PORT_"])
    func `an unknown KEDGE_ variable is refused`(name: String) async {
        await #expect(throws: ConfigurationError.self) {
            _ = try await self.load(environment: [name: "1"])
        }
    }

    @Test func `variables of the client and of other programs are ignored`() async throws {
        let loader = try await load(environment: [
            "PATH": "/bin", "PORT": "1", "kedge_port": "1", "KEDGE_SERVER": "http://x",
            "KEDGE_TOKEN": "t", "KEDGE_CONFIG": "/x",
        ])
        #expect(loader.values[.port] == ConfigurationKey.port.defaultValue)
    }

    struct Mistake: Sendable {
        var key: ConfigurationKey
        var values: [String]
    }

    @Test func `sizes and times take units`() async throws {
        let loader = try await load(flags: [
            .maxFileSize: "10GiB", .maxChunkSize: "32M", .minBodyRate: "2k",
            .sessionLifetime: "3d", .idleTimeout: "5m",
        ])
        let configuration = try loader.configuration()
        #expect(configuration.engine.maxFileSize == 10 << 30)
        #expect(configuration.engine.chunkSizes.upperBound == 32 << 20)
        #expect(configuration.minBodyBytesPerSecond == 2048)
        #expect(configuration.engine.sessionLifetime == .seconds(259_200))
        #expect(configuration.idleTimeout == .seconds(300))
    }

    @Test(arguments: [
        Mistake(key: .port, values: ["", "-1", "65536", "x", "1e3", "+80", " 80", "٨٠"]),
        Mistake(
            key: .publicAddress,
            values: [
                " ", "files.example", "/kedge", "https://", "https:///kedge", "ftp://files.example",
                "https://files.example?x", "https://files.example/?x", "https://files.example/#x",
                "https://user@files.example", "https://user:word@files.example",
                "https://files.example:65536", "https://files example",
                "https://files.example/../x",
                "https://files.example/%41", "https://files.example/é",
            ]),
        Mistake(key: .interim, values: ["", "Auto", "on", "off"]),
        Mistake(key: .corsOrigins, values: ["app.example", "https://app.example/", "*, *"]),
        Mistake(key: .maxFileSize, values: ["0", "-1", "1X", "9223372036854775808"]),
        Mistake(key: .minChunkSize, values: ["0", "67108865"]),
        Mistake(key: .maxChunkSize, values: ["0", "1"]),
        Mistake(key: .defaultChunkSize, values: ["0", "262143", "67108865"]),
        Mistake(key: .maxConcurrentWrites, values: ["0", "10001"]),
        Mistake(key: .maxConnections, values: ["0", "1000001", "", "many"]),
        Mistake(key: .maxOpenSessions, values: ["0", "-1", "100000001"]),
        Mistake(key: .quotaStoredBytes, values: ["", "-1", "1X", "9223372036854775808"]),
        Mistake(key: .quotaOpenSessions, values: ["", "-1", "1K", "100000001"]),
        Mistake(key: .quotaFileBytes, values: ["", "-1", "none"]),
        Mistake(key: .emptySessionLifetime, values: ["0", "1M"]),
        Mistake(key: .storageAllow, values: ["all", "shared,"]),
        Mistake(key: .sessionLifetime, values: ["0", "3153600001", "9223372036854775807"]),
        Mistake(key: .sessionGrace, values: ["-1", "1w"]),
        Mistake(key: .idleTimeout, values: ["0", "1.5"]),
        Mistake(key: .minBodyRate, values: ["-1", "1000000001"]),
        Mistake(key: .drainTimeout, values: ["-1"]),
        Mistake(key: .storageReserve, values: ["-1"]),
        Mistake(key: .sweepInterval, values: ["0"]),
        Mistake(key: .logLevel, values: ["", "loud", "INFO"]),
        Mistake(key: .logFormat, values: ["", "xml"]),
        Mistake(key: .metadata, values: ["", "mysql://x", "postgres:"]),
        Mistake(key: .bytes, values: ["", "gs://x", "s3:x"]),
        Mistake(key: .hashPath, values: ["", "AVX2", "sha256", "auto libcrypto"]),
        Mistake(key: .rateRequests, values: ["-1", "x", "1000001", "0.5"]),
        Mistake(key: .rateCreates, values: ["", "1/s"]),
        Mistake(key: .rateFailedAuthentications, values: ["off"]),
        Mistake(key: .logAudit, values: ["", "on", "audit", "/var/log/"]),
        Mistake(key: .durability, values: ["", "OFF", "false", "no", "0", "on off"]),
    ])
    func `a wrong value is refused with the name of its section`(mistake: Mistake) async throws {
        for value in mistake.values {
            let loader = try await load(flags: [mistake.key: value])
            let error = #expect(throws: ConfigurationError.self) {
                _ = try loader.configuration()
            }
            // Chunk sizes are checked against each other, so the message may name either.
            let section = mistake.key.rawValue.split(separator: ".")[0]
            #expect(error?.description.contains(section) == true)
        }
    }

    @Test func `a printed configuration reads back unchanged`() async throws {
        var flags: [ConfigurationKey: String] = [:]
        for key in ConfigurationKey.allCases { flags[key] = Self.other(key) }
        flags[.data] = "C:\\a \"b\": #{é} 'c' !&* %20"
        var hostile = flags
        hostile[.data] =
            "a\nport: 1\r\n\t\u{1}\u{7F}\u{85}\u{A0}\u{2028}\u{FEFF}\u{FFFE}\u{E000}🏴‍☠️\u{1F}"
        hostile[.allowedHosts] = "\"\n# x\n- \\n\\\"\\"
        for given in [[:], flags, hostile] {
            let first = try await load(flags: given)
            let second = try await load(file: first.printed())
            #expect(second.values == first.values)
        }
    }
}
