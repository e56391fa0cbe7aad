internal import Glibc

/// The best speeds of the machine: the parts of which transfers are made, one by one.
enum Floors {
    static func measure(_ bench: Bench) throws -> Measured {
        var one: [Double] = []
        var all: [Double] = []
        var disk: [Double] = []
        var loopback: [Double] = []
        for _ in 0..<bench.scale.runs {
            one.append(try DigestSpeed.measure(threads: 1))
            all.append(try DigestSpeed.measure(threads: Machine.coreCount))
            disk.append(try writeToDisk(bench))
            loopback.append(
                try LoopbackFloor.measure(bench.source, byteCount: bench.scale.rawByteCount))
        }
        let unit = Row.Unit.mebibytesPerSecond
        return Measured(rows: [
            Row("floor.digest-one", "SHA-256, one core", unit, one, name: "libcrypto"),
            Row("floor.digest-all", "SHA-256, all cores at once", unit, all, name: "libcrypto"),
            Row("floor.disk", "dd to disk with fdatasync", unit, disk, name: "dd"),
            Row("floor.loopback", "sendfile over loopback", unit, loopback, name: "kernel"),
        ])
    }

    private static func writeToDisk(_ bench: Bench) throws -> Double {
        bench.scratch.settle()
        let directory = try bench.scratch.makeDirectory("dd")
        defer { Scratch.remove(directory) }
        let count = max(1, bench.scale.rawByteCount >> 20)
        let began = ContinuousClock.now
        let process = try BenchProcess(
            try Executable.require("dd"),
            ["if=/dev/zero", "of=\(directory)/zeros", "bs=1M", "count=\(count)", "conv=fdatasync"],
            home: directory, log: "\(directory)/log")
        guard try process.wait(limit: 600).status == 0 else { throw BenchFailure("dd failed") }
        return Double(count) / elapsedSeconds(since: began)
    }
}

/// A sender from the page cache and a receiver that discards all bytes, each on a thread.
private enum LoopbackFloor {
    /// Measures MiB a second from the first byte sent to the last one received.
    static func measure(_ source: SourceFile, byteCount: Int) throws -> Double {
        let (listener, port) = try BenchSocket.listen()
        let began = ContinuousClock.now
        _ = try concurrently(2) { side in
            if side == 0 {
                try send(source, byteCount, to: port)
            } else {
                try receive(byteCount, from: listener)
            }
        }
        return Double(byteCount) / Double(1 << 20) / elapsedSeconds(since: began)
    }

    private static func send(_ source: SourceFile, _ byteCount: Int, to port: UInt16) throws {
        let socket = try BenchSocket.connect(to: port)
        var offset: off_t = 0
        while offset < byteCount {
            let count = sendfile(
                socket.number, source.file.number, &offset, byteCount - Int(offset))
            guard count > 0 else { throw BenchFailure.system("sendfile") }
        }
    }

    private static func receive(_ byteCount: Int, from listener: Descriptor) throws {
        let socket = try Descriptor(accept(listener.number, nil, nil), "accept")
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var rest = byteCount
        while rest > 0 {
            let count = recv(socket.number, &buffer, buffer.count, 0)
            guard count > 0 else { throw BenchFailure.system("receive") }
            rest -= count
        }
    }
}
