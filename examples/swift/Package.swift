// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "upload",
    platforms: [.macOS(.v26)],
    dependencies: [
        // In a package of your own: the URL of the repository, and a version.
        .package(name: "kedge", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "upload",
            dependencies: [
                .product(name: "KedgeClient", package: "kedge"),
                .product(name: "KedgeModel", package: "kedge"),
            ])
    ]
)
