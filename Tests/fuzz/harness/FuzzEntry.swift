import Glibc

/// The checks of one parser, over one input.
struct FuzzTarget: Sendable {
    let name: String
    let check: @Sendable ([UInt8]) -> Void

    static let all: [FuzzTarget] =
        modelTargets + messageTargets + headerTargets + clientTargets + commandTargets
}

/// The target that `KEDGE_FUZZ_TARGET` names. One program holds them all, because building it takes
/// longer than many runs.
private let chosen: FuzzTarget = {
    let name = unsafe getenv("KEDGE_FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        let names = FuzzTarget.all.map(\.name).joined(separator: " ")
        print("KEDGE_FUZZ_TARGET is one of: \(names)")
        exit(2)
    }
    return target
}()

/// Runs the checks on an input; libFuzzer calls it for every input.
@c(LLVMFuzzerTestOneInput)
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ byteCount: Int) -> CInt {
    let bytes = unsafe [UInt8](UnsafeBufferPointer(start: start, count: byteCount))
    checkWithinTime(bytes)
    if let long = repeated(bytes) { checkWithinTime(long) }
    return 0
}

/// Repeats one short input in 256 to the length of the longest message: chance finds a short
/// pattern that slows a parser, but hardly ever a long text made of it.
private func repeated(_ bytes: [UInt8]) -> [UInt8]? {
    let sum = bytes.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
    guard (1...32).contains(bytes.count), sum.isMultiple(of: 256) else { return nil }
    return Array(repeatElement(bytes, count: (32 << 10) / bytes.count).joined())
}

/// Runs the checks and stops when they take too much time for the length of the input.
///
/// Measures processor time, so that another program on the machine cannot fail the check.
private func checkWithinTime(_ bytes: [UInt8]) {
    let start = processorMilliseconds()
    chosen.check(bytes)
    let taken = processorMilliseconds() - start
    // Generous, because sanitizers slow everything; quadratic time exceeds it by far.
    let allowed = 250 + 10 * bytes.count / 1024
    require(taken <= allowed, "\(bytes.count) bytes take \(taken) ms, allowed are \(allowed)")
}

private func processorMilliseconds() -> Int {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else {
        preconditionFailure("every thread has a clock of its own")
    }
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}
