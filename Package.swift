// swift-tools-version: 6.2

import PackageDescription

/// One list for every target of ours: Swift 6 mode with all upcoming features, warnings as errors.
let strictSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .treatAllWarnings(as: .error),
]

/// A product that targets depend on.
func product(_ name: String, of package: String) -> Target.Dependency {
    .product(name: name, package: package)
}

let argumentParser = product("ArgumentParser", of: "swift-argument-parser")
let configuration = product("Configuration", of: "swift-configuration")
let grdb = product("GRDB", of: "GRDB.swift")
let httpTypes = product("HTTPTypes", of: "swift-http-types")
let hummingbird = product("Hummingbird", of: "hummingbird")
let jwtKit = product("JWTKit", of: "jwt-kit")
let lifecycle = product("ServiceLifecycle", of: "swift-service-lifecycle")
let logging = product("Logging", of: "swift-log")
let nioCore = product("NIOCore", of: "swift-nio")
let nioTLS = [product("NIOSSL", of: "swift-nio-ssl"), product("NIOTLS", of: "swift-nio")]
/// HTTP/1 on NIO, with the types of `httpTypes`.
let nioHTTP = [
    product("NIOHTTP1", of: "swift-nio"),
    product("NIOHTTPTypes", of: "swift-nio-extras"),
    product("NIOHTTPTypesHTTP1", of: "swift-nio-extras"),
    product("NIOPosix", of: "swift-nio"),
]
let yams = product("Yams", of: "Yams")

/// The foundation of nearly every target: locks, files, hashes and values.
let basics: [Target.Dependency] = ["KedgeFiles", "KedgeHash", "KedgeLocks", "KedgeModel"]

let package = Package(
    name: "kedge",
    platforms: [.macOS(.v26), .iOS(.v26)],
    products: [
        .executable(name: "kedge", targets: ["kedge"]),
        .library(name: "KedgeClient", targets: ["KedgeClient"]),
        .library(name: "KedgeModel", targets: ["KedgeModel"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(
            url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    ],
    targets: [
        // Values, hashes and files, which both ends share.
        .systemLibrary(
            name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMalloc"),
        // Two SHA-256 computations over the same bytes for the price of one.
        .target(name: "CSHA256"),
        // Whether files of well-known formats are all there. Values only, as KedgeModel.
        .target(name: "KedgeContainers"),
        // Files through one seam, and the threads on which blocking calls run.
        .target(name: "KedgeFiles", dependencies: ["CMalloc", "KedgeLocks", "KedgeModel"]),
        .target(
            name: "KedgeHash", dependencies: ["CCrypto", "CSHA256", "KedgeLocks", "KedgeModel"]),
        // Principals, scopes, tokens and links as values, and the ports that store them. No I/O.
        .target(
            name: "KedgeIdentity", dependencies: ["KedgeHash", "KedgeModel", "KedgeSecrets"]),
        .target(name: "KedgeLocks"),
        .target(
            name: "KedgeMigrations",
            dependencies: ["KedgeFiles", "KedgeHash", "KedgeModel", grdb]),
        // Values that both ends share. No I/O, no NIO, no C, no Foundation.
        .target(name: "KedgeModel"),
        // Keys, codes that authenticate, random bytes, and the texts that carry them. No I/O.
        .target(name: "KedgeSecrets", dependencies: ["CCrypto", "KedgeHash", "KedgeModel"]),
        .plugin(
            name: "EmbedMigrations", capability: .buildTool(),
            dependencies: ["migration-embedder"], path: "Sources/EmbedMigrations"),
        .executableTarget(name: "migration-embedder"),

        // HTTP to other servers.
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(
            name: "KedgeCurl", dependencies: ["CCurl", "KedgeLocks", "KedgeTransport", httpTypes]),
        // Requests and responses of HTTP clients, and the seam that carries them.
        .target(name: "KedgeTransport", dependencies: [httpTypes]),

        // The service: its core, which knows two ports, and the stores and front ends around it.
        .systemLibrary(
            name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(
            name: "KedgeDisk",
            dependencies: ["KedgeEngine", "KedgeFiles", "KedgeLocks", "KedgeModel"]),
        .target(name: "KedgeEngine", dependencies: basics + ["KedgeMetrics", logging]),
        // Tokens of OpenID providers, and the keys that verify them.
        .target(
            name: "KedgeJWT",
            dependencies: [
                "KedgeCurl", "KedgeHash", "KedgeIdentity", "KedgeLocks", "KedgeModel",
                "KedgeSecrets", "KedgeTransport", httpTypes, jwtKit, logging,
            ]),
        // The table of metrics, their values and the text for Prometheus.
        .target(name: "KedgeMetrics", dependencies: ["KedgeLocks"]),
        .target(
            name: "KedgePostgres",
            dependencies: basics + ["CPostgres", "KedgeEngine", "KedgeIdentity", "KedgeMetrics"],
            plugins: ["EmbedMigrations"]),
        .target(
            name: "KedgeS3",
            dependencies: basics + [
                "KedgeCurl", "KedgeEngine", "KedgeMetrics", "KedgeSecrets", "KedgeTransport",
                httpTypes,
            ]),
        .target(
            name: "KedgeServer",
            dependencies: basics + nioHTTP + [
                "KedgeEngine", "KedgeIdentity", "KedgeMetrics", "KedgeSecrets", "KedgeTLS",
                configuration,
                httpTypes, hummingbird, lifecycle, logging, nioCore,
                product("HummingbirdCore", of: "hummingbird"),
                product("SystemPackage", of: "swift-system"), yams,
            ], plugins: ["EmbedMigrations"]),
        .target(
            name: "KedgeSQLite",
            dependencies: [
                "KedgeEngine", "KedgeFiles", "KedgeIdentity", "KedgeLocks", "KedgeMetrics",
                "KedgeMigrations", "KedgeModel", grdb,
            ],
            plugins: ["EmbedMigrations"]),
        // TLS of the server: its certificate, which is exchanged while it runs.
        .target(
            name: "KedgeTLS",
            dependencies: nioTLS + [
                "KedgeFiles", "KedgeLocks", "KedgeModel", logging, nioCore,
            ]),

        // The client: durable transfers, scheduling, retry, promotion of downloads.
        .target(
            name: "KedgeClient",
            dependencies: basics + [
                "KedgeContainers", "KedgeCurl", "KedgeMigrations", "KedgeTransport", grdb,
                httpTypes, logging,
            ], plugins: ["EmbedMigrations"]),

        // Spares a static program the 34 MB of ICU's locales.
        .target(name: "CICUStubData"),
        // The width of a character on a terminal.
        .systemLibrary(name: "CWidth"),
        // The command: the service and the client as one program.
        .executableTarget(
            name: "kedge",
            dependencies: [
                "CICUStubData", "CWidth", "KedgeClient", "KedgeContainers", "KedgeDisk",
                "KedgeEngine",
                "KedgeFiles", "KedgeHash", "KedgeIdentity", "KedgeJWT", "KedgeLocks",
                "KedgeMetrics", "KedgeMigrations", "KedgeModel", "KedgePostgres", "KedgeS3",
                "KedgeSQLite", "KedgeSecrets", "KedgeServer",
                argumentParser,
                lifecycle, logging, yams,
                product("UnixSignals", of: "swift-service-lifecycle"),
            ]),

        // Shared fixtures of the tests, and programs that test from outside.

        // The example, built like the code that it shows; it is also a package of its own.
        .executableTarget(
            name: "upload-example", dependencies: ["KedgeClient", "KedgeModel"],
            path: "examples/swift/Sources/upload"),
        // Measures the release binary. Knows none of its targets, so that it builds quickly.
        .executableTarget(
            name: "kedge-bench", dependencies: ["CCrypto", "KedgeLocks", argumentParser],
            path: "Tests/bench/program"),
        // The whole system in one process, with everything that can fail in memory.
        .executableTarget(
            name: "kedge-simulator",
            dependencies: basics + [
                "KedgeClient", "KedgeDisk", "KedgeEngine", "KedgeServer", "KedgeTesting",
                httpTypes, hummingbird, logging, nioCore,
                product("NIOEmbedded", of: "swift-nio"),
            ], path: "Tests/simulator"),
        // Conformance kits of the stores, simulated disk and rows, faults, servers, fixtures.
        .target(
            name: "KedgeTesting",
            dependencies: basics + ["KedgeEngine", "KedgeIdentity", logging],
            path: "Tests/KedgeTesting"),

        // Tests, a target for each of the above.
        .testTarget(
            name: "KedgeClientTests",
            dependencies: basics + nioHTTP + [
                "KedgeClient", "KedgeTesting", grdb, httpTypes, logging, nioCore,
                product("NIOResumableUpload", of: "swift-nio-extras"),
            ]),
        // The real binary as separate processes; built beside the tests.
        .testTarget(
            name: "KedgeCommandTests",
            dependencies: [
                "KedgeClient", "KedgeHash", "KedgeLocks", "KedgeModel", "KedgeTesting",
            ]),
        .testTarget(name: "KedgeContainersTests", dependencies: ["KedgeContainers"]),
        .testTarget(
            name: "KedgeCurlTests",
            dependencies: [
                "KedgeCurl", "KedgeLocks", "KedgeTesting", "KedgeTransport", httpTypes,
            ]),
        .testTarget(
            name: "KedgeDiskTests",
            dependencies: basics + ["KedgeDisk", "KedgeEngine", "KedgeTesting"]),
        .testTarget(
            name: "KedgeEngineTests",
            dependencies: basics + [
                "KedgeDisk", "KedgeEngine", "KedgePostgres", "KedgeS3", "KedgeSQLite",
                "KedgeTesting", logging,
            ]),
        .testTarget(
            name: "KedgeFilesTests", dependencies: ["KedgeFiles", "KedgeLocks", "KedgeTesting"]),
        .testTarget(
            name: "KedgeHashTests",
            dependencies: ["KedgeHash", "KedgeLocks", "KedgeModel", "KedgeTesting"]),
        .testTarget(
            name: "KedgeIdentityTests",
            dependencies: ["KedgeIdentity", "KedgeModel", "KedgeSecrets"]),
        .testTarget(
            name: "KedgeJWTTests",
            dependencies: [
                "KedgeCurl", "KedgeHash", "KedgeIdentity", "KedgeJWT", "KedgeModel",
                "KedgeSecrets", "KedgeTesting", "KedgeTransport", httpTypes, jwtKit, logging,
            ]),
        .testTarget(name: "KedgeMetricsTests", dependencies: ["KedgeMetrics", "KedgeTesting"]),
        .testTarget(name: "KedgeModelTests", dependencies: ["KedgeModel", "KedgeTesting"]),
        .testTarget(
            name: "KedgePostgresTests",
            dependencies: basics + [
                "KedgeEngine", "KedgeIdentity", "KedgePostgres", "KedgeTesting",
            ]),
        .testTarget(
            name: "KedgeS3Tests",
            dependencies: basics + [
                "KedgeCurl", "KedgeEngine", "KedgeS3", "KedgeTesting", "KedgeTransport", httpTypes,
            ]),
        .testTarget(
            name: "KedgeSecretsTests",
            dependencies: ["KedgeModel", "KedgeSecrets", "KedgeTesting"]),
        .testTarget(
            name: "KedgeServerTests",
            dependencies: basics + [
                "KedgeDisk", "KedgeEngine", "KedgeIdentity", "KedgeSQLite", "KedgeSecrets",
                "KedgeServer", "KedgeTLS", "KedgeTesting",
                lifecycle, logging, yams,
            ]),
        .testTarget(
            name: "KedgeSQLiteTests",
            dependencies: [
                "KedgeEngine", "KedgeFiles", "KedgeLocks", "KedgeMigrations", "KedgeModel",
                "KedgeSQLite", "KedgeTesting", grdb,
            ]),
        .testTarget(
            name: "KedgeTLSTests",
            dependencies: ["KedgeFiles", "KedgeModel", "KedgeTLS", "KedgeTesting"]),
    ]
)

for target in package.targets where ![.system, .plugin].contains(target.type) {
    target.swiftSettings = (target.swiftSettings ?? []) + strictSettings
}
