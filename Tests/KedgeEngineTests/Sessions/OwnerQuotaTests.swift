import KedgeEngine
import Testing

struct OwnerQuotaTests {
    private func quota(
        _ limits: QuotaLimits, stored: Int64 = 0, reserved: Int64 = 0, open: Int64 = 0
    ) -> OwnerQuota {
        OwnerQuota(
            limits: limits, storedBytes: stored, reservedBytes: reserved, openSessionCount: open)
    }

    @Test func `without limits there is room for everything`() throws {
        let all = quota(.none, stored: .max, reserved: .max, open: .max)
        try all.requireRoom(forNewSessionOf: .max)
        #expect(try all.reservation(covering: 1, beyond: 0) == OwnerQuota.reservationStep)
    }

    @Test func `sums that already exceed the limit refuse growth without an overflow`() {
        let full = quota(QuotaLimits(storedBytes: 1), stored: .max, reserved: .max)
        #expect(throws: MetadataError.self) {
            try full.requireRoom(forFileOf: 1, growth: 1)
        }
        #expect(throws: MetadataError.self) {
            _ = try full.reservation(covering: 2, beyond: 1)
        }
    }

    @Test func `a change that does not grow is not refused`() throws {
        let full = quota(
            QuotaLimits(storedBytes: 1, openSessions: 1, fileBytes: 1), stored: 9, reserved: 9,
            open: 1)
        try full.requireRoom(forNewSessionOf: 0)
        try full.requireRoom(forFileOf: 9, growth: 0)
        try full.requireRoom(forFileOf: 9, growth: -1)
    }

    @Test(
        arguments: [
            (Int64(0), Int64(10), OwnerQuota.reservationStep),
            (Int64(5), OwnerQuota.reservationStep + 100, OwnerQuota.reservationStep + 100),
            (Int64(100), Int64(101), 100 + OwnerQuota.reservationStep),
        ] as [(Int64, Int64, Int64)])
    func `a reservation grows by a step, or by more if that does not suffice`(
        reserved: Int64, end: Int64, expected: Int64
    ) throws {
        #expect(try quota(.none).reservation(covering: end, beyond: reserved) == expected)
    }

    @Test func `a reservation takes what is left, and no more than the largest file`() throws {
        let left = quota(QuotaLimits(storedBytes: 100), stored: 40, reserved: 30)
        #expect(try left.reservation(covering: 40, beyond: 10) == 40)
        #expect(try left.reservation(covering: 20, beyond: 10) == 40)
        #expect(throws: MetadataError.self) { _ = try left.reservation(covering: 41, beyond: 10) }
        let small = quota(QuotaLimits(fileBytes: 50))
        #expect(try small.reservation(covering: 20, beyond: 10) == 50)
        #expect(throws: MetadataError.self) { _ = try small.reservation(covering: 51, beyond: 10) }
        #expect(try quota(.none).reservation(covering: 20, beyond: 10, upTo: 30) == 30)
    }
}
