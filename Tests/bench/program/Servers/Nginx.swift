internal import Glibc

/// nginx that accepts files by PUT and serves them by GET, and verifies and syncs nothing.
final class Nginx: Server {
    let name = "nginx"
    let port: UInt16
    let process: BenchProcess
    let certificate: Certificate?
    /// The directory of its files.
    let root: String
    private let directory: String

    /// - Parameter certificate: A certificate to speak TLS with; nil for plain HTTP.
    init(_ bench: Bench, certificate: Certificate? = nil) throws {
        self.certificate = certificate
        directory = try bench.scratch.makeDirectory("nginx")
        root = "\(directory)/files"
        guard mkdir(root, 0o755) == 0 else { throw BenchFailure.system("mkdir \(root)") }
        port = try BenchSocket.freePort()
        let configuration = "\(directory)/nginx.conf"
        try TextFile.write(
            Self.configuration(directory: directory, port: port, certificate: certificate),
            to: configuration)
        process = try BenchProcess(
            try Executable.require("nginx"),
            ["-c", configuration, "-e", "\(directory)/error.log"],
            home: directory, log: "\(directory)/nginx.log")
        try waitUntilListening()
    }

    /// Makes the configuration. Bodies arrive on the file system of the files, so that storing one
    /// is a rename.
    private static func configuration(
        directory: String, port: UInt16, certificate: Certificate?
    ) -> String {
        // Started by root, workers would run as another user, who cannot enter the directory.
        let user = getuid() == 0 ? "user root;" : ""
        let tls =
            certificate.map { certificate in
                "ssl_certificate \(certificate.path); ssl_certificate_key \(certificate.keyPath); "
                    + "ssl_protocols TLSv1.2 TLSv1.3;"
            } ?? ""
        return """
            worker_processes auto;
            worker_rlimit_nofile 4096;
            daemon off;
            pid \(directory)/nginx.pid;
            \(user)
            events { worker_connections 2048; }
            http {
                access_log off;
                sendfile on;
                keepalive_requests 1000000;
                client_body_temp_path \(directory)/body;
                proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/fastcgi;
                uwsgi_temp_path \(directory)/uwsgi;
                scgi_temp_path \(directory)/scgi;
                server {
                    listen 127.0.0.1:\(port)\(certificate == nil ? "" : " ssl");
                    \(tls)
                    root \(directory)/files;
                    client_max_body_size 0;
                    location / { dav_methods PUT; }
                }
            }

            """
    }

    func discard() throws {
        try process.stop()
        Scratch.remove(directory)
    }
}
