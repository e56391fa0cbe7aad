/// A type-erased random number generator. Randomness is a parameter, so that a run can be repeated.
package struct AnyGenerator: RandomNumberGenerator {
    private var base: any RandomNumberGenerator

    package init(_ base: any RandomNumberGenerator) { self.base = base }

    package mutating func next() -> UInt64 { base.next() }
}
