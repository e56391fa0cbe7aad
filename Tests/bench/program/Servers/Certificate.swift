/// A certificate for the loopback address that signs itself, so that it is also its authority.
struct Certificate: Sendable {
    /// The PEM file of the certificate.
    let path: String
    /// The PEM file of its key, which only this user may read.
    let keyPath: String

    init(_ bench: Bench) throws {
        let directory = try bench.scratch.makeDirectory("certificate")
        path = "\(directory)/certificate.pem"
        keyPath = "\(directory)/key.pem"
        let openssl = try BenchProcess(
            try Executable.require("openssl"),
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-keyout", keyPath, "-out", path, "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ], home: directory, log: "\(directory)/log")
        guard try openssl.wait(limit: 60).status == 0 else {
            throw BenchFailure("openssl: \(try TextFile.read("\(directory)/log"))")
        }
    }
}
