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

let configuration = Target.Dependency.product(
    name: "Configuration", package: "swift-configuration")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let lifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

let package = Package(
    name: "kedge",
    platforms: [.macOS(.v26), .iOS(.v26)],
    products: [
        .executable(name: "kedge", targets: ["kedge"]),
        .library(name: "KedgeClient", targets: ["KedgeClient"]),
        .library(name: "KedgeModel", targets: ["KedgeModel"]),
    ],
    dependencies: [
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(
            url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Values that both ends share. No I/O, no NIO, no C, no Foundation.
        .target(name: "KedgeModel"),
        .systemLibrary(
            name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // Two SHA-256 computations over the same bytes for the price of one.
        .target(name: "CSHA256"),
        .target(
            name: "KedgeHash", dependencies: ["CCrypto", "CSHA256", "KedgeLocks", "KedgeModel"]),
        .target(name: "KedgeLocks"),
        // Files through one seam, and the threads on which blocking calls run.
        .systemLibrary(name: "CMalloc"),
        .target(name: "KedgeFiles", dependencies: ["CMalloc", "KedgeLocks", "KedgeModel"]),

        // The heart of the server: sessions, chunks, finalize, expiry. Knows two ports.
        .target(
            name: "KedgeEngine",
            dependencies: ["KedgeLocks", "KedgeFiles", "KedgeHash", "KedgeModel", logging]),
        .target(
            name: "KedgeDisk",
            dependencies: ["KedgeLocks", "KedgeEngine", "KedgeFiles", "KedgeModel"]),
        .target(
            name: "KedgeSQLite",
            dependencies: [
                "KedgeLocks", "KedgeEngine", "KedgeFiles", "KedgeMigrations", "KedgeModel", grdb,
            ],
            plugins: ["EmbedMigrations"]),
        .systemLibrary(
            name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(
            name: "KedgePostgres",
            dependencies: [
                "CPostgres", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeLocks", "KedgeModel",
            ],
            plugins: ["EmbedMigrations"]),
        .target(
            name: "KedgeS3",
            dependencies: [
                "KedgeCurl", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeLocks", "KedgeModel",
                "KedgeTransport", httpTypes,
            ]),
        .target(
            name: "KedgeMigrations",
            dependencies: ["KedgeFiles", "KedgeHash", "KedgeModel", grdb]),
        .executableTarget(name: "migration-embedder"),
        .plugin(
            name: "EmbedMigrations", capability: .buildTool(),
            dependencies: ["migration-embedder"], path: "Sources/EmbedMigrations"),

        .target(
            name: "KedgeServer",
            dependencies: [
                "KedgeLocks",
                "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel", configuration, httpTypes,
                lifecycle, logging,
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Yams", package: "Yams"),
            ]),

        // Requests and responses of HTTP clients, and the seam that carries them.
        .target(name: "KedgeTransport", dependencies: [httpTypes]),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(
            name: "KedgeCurl", dependencies: ["KedgeLocks", "KedgeTransport", "CCurl", httpTypes]),
        // Whether files of well-known formats are all there. Values only, as KedgeModel.
        .target(name: "KedgeContainers"),
        // The worker: durable transfers, scheduling, retry, promotion of downloads.
        .target(
            name: "KedgeClient",
            dependencies: [
                "KedgeContainers",
                "KedgeLocks",
                "KedgeCurl", "KedgeFiles", "KedgeHash", "KedgeMigrations", "KedgeModel",
                "KedgeTransport", grdb, httpTypes, logging,
            ], plugins: ["EmbedMigrations"]),

        // The shared parts of tests: conformance kits of the stores, simulated disk and rows, faults,
        // servers, fixtures.
        .target(
            name: "KedgeTesting",
            dependencies: ["KedgeLocks", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel"],
            path: "Tests/KedgeTesting"),

        // The whole system in one process, with everything that can fail in memory; a test.
        .executableTarget(
            name: "kedge-simulator",
            dependencies: [
                "KedgeLocks",
                "KedgeClient", "KedgeDisk", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel",
                "KedgeServer", "KedgeTesting", httpTypes, logging,
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ], path: "Tests/simulator"),

        // Measures the release binary from outside. Knows none of its targets, so that it builds quickly.
        .executableTarget(
            name: "kedge-bench",
            dependencies: [
                "CCrypto", "KedgeLocks",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], path: "Tests/bench/program"),

        .testTarget(
            name: "KedgePostgresTests",
            dependencies: [
                "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeLocks", "KedgeModel",
                "KedgePostgres", "KedgeTesting",
            ]),
        .testTarget(
            name: "KedgeS3Tests",
            dependencies: [
                "KedgeCurl", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeLocks", "KedgeModel",
                "KedgeS3", "KedgeTesting", "KedgeTransport", httpTypes,
            ]),

        // The real binary as separate processes; built beside the tests.
        .testTarget(
            name: "KedgeCommandTests",
            dependencies: ["KedgeHash", "KedgeLocks", "KedgeModel", "KedgeTesting"]),
        .testTarget(name: "KedgeModelTests", dependencies: ["KedgeModel", "KedgeTesting"]),
        .testTarget(name: "KedgeContainersTests", dependencies: ["KedgeContainers"]),
        .testTarget(
            name: "KedgeHashTests",
            dependencies: ["KedgeHash", "KedgeLocks", "KedgeModel", "KedgeTesting"]),
        .testTarget(
            name: "KedgeFilesTests", dependencies: ["KedgeLocks", "KedgeFiles", "KedgeTesting"]),
        .testTarget(
            name: "KedgeEngineTests",
            dependencies: [
                "KedgeLocks",
                "KedgeDisk", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel",
                "KedgePostgres", "KedgeS3", "KedgeSQLite", "KedgeTesting",
                logging,
            ]),
        .testTarget(
            name: "KedgeServerTests",
            dependencies: [
                "KedgeLocks",
                "KedgeDisk", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel",
                "KedgeSQLite", "KedgeServer", "KedgeTesting", lifecycle, logging,
                .product(name: "Yams", package: "Yams"),
            ]),
        .testTarget(
            name: "KedgeSQLiteTests",
            dependencies: [
                "KedgeLocks",
                "KedgeEngine", "KedgeFiles", "KedgeMigrations", "KedgeModel", "KedgeSQLite",
                "KedgeTesting", grdb,
            ]),
        .testTarget(
            name: "KedgeDiskTests",
            dependencies: [
                "KedgeLocks",
                "KedgeDisk", "KedgeEngine", "KedgeFiles", "KedgeHash", "KedgeModel",
                "KedgeTesting",
            ]),
        .testTarget(
            name: "KedgeClientTests",
            dependencies: [
                "KedgeLocks",
                "KedgeClient", "KedgeFiles", "KedgeHash", "KedgeModel", "KedgeTesting", grdb,
                httpTypes, logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOResumableUpload", package: "swift-nio-extras"),
            ]),
        .testTarget(
            name: "KedgeCurlTests",
            dependencies: [
                "KedgeCurl", "KedgeLocks", "KedgeTesting", "KedgeTransport", httpTypes,
            ]),

        .executableTarget(
            name: "kedge",
            dependencies: [
                "KedgeContainers",
                "KedgeLocks",
                "KedgeClient", "KedgeDisk", "KedgeEngine", "KedgeFiles", "KedgeMigrations",
                "KedgeModel", "KedgePostgres", "KedgeS3",
                "KedgeSQLite", "KedgeServer", lifecycle, logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
    ]
)

for target in package.targets where ![.system, .plugin].contains(target.type) {
    target.swiftSettings = (target.swiftSettings ?? []) + strictSettings
}
