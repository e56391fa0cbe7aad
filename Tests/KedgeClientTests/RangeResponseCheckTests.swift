import HTTPTypes
import KedgeClient
import KedgeModel
import Testing

private let day = "Fri, 02 Jan 2026 03:04:05 GMT"

/// R91, R136: the head of an answer is judged before a byte of its body is written.
struct RangeResponseCheckTests {
    private func verdict(
        _ status: Int, _ fields: HTTPFields, _ validator: RangeValidator = .tag("\"v1\"")
    ) -> RangeResponseCheck {
        RangeResponseCheck(
            status: status, fields: fields, asked: ByteRange(start: 100, end: 200), total: 1000,
            validator: validator)
    }

    @Test func `the exact range of the exact version is accepted`() {
        let fields: HTTPFields = [
            .contentRange: "bytes 100-199/1000", .eTag: "\"v1\"", .contentLength: "100",
        ]
        #expect(verdict(206, fields) == .accepted)
    }

    @Test(arguments: [
        "bytes 0-99/1000", "bytes 100-198/1000", "bytes 101-199/1000", "bytes 100-199/1001",
        "bytes 100-199/*", "bytes */1000", "items 100-199/1000", "bytes 100-1099/1000", "",
    ])
    func `an answer with another range is a violation`(range: String) {
        #expect(verdict(206, [.contentRange: range, .eTag: "\"v1\""]) == .violation)
    }

    @Test func `a missing validator, a coding and a wrong length are violations`() {
        let range = "bytes 100-199/1000"
        #expect(verdict(206, [.contentRange: range]) == .violation)
        #expect(
            verdict(206, [.contentRange: range, .eTag: "\"v1\"", .contentEncoding: "gzip"])
                == .violation)
        #expect(
            verdict(206, [.contentRange: range, .eTag: "\"v1\"", .contentLength: "99"])
                == .violation)
    }

    @Test func `an answer with another version is a change, whatever its status`() {
        #expect(verdict(206, [.contentRange: "bytes 100-199/1000", .eTag: "\"v2\""]) == .changed)
        #expect(verdict(200, [.eTag: "\"v2\""]) == .changed)
        #expect(verdict(200, [:]) == .violation)
        #expect(verdict(412, [:]) == .changed)
        #expect(verdict(416, [.contentRange: "bytes */50"]) == .changed)
    }

    // RFC 9110 section 15.3.7: an answer to If-Range need not repeat the date.
    @Test(arguments: [RangeValidator.date(day), .weak(day)])
    func `a range with the same date or none is accepted`(validator: RangeValidator) {
        let range = "bytes 100-199/1000"
        #expect(verdict(206, [.contentRange: range], validator) == .accepted)
        #expect(verdict(206, [.contentRange: range, .lastModified: day], validator) == .accepted)
        let other = "Fri, 02 Jan 2026 03:04:06 GMT"
        #expect(verdict(206, [.contentRange: range, .lastModified: other], validator) == .changed)
        #expect(verdict(200, [.lastModified: other], validator) == .changed)
        #expect(verdict(200, [.lastModified: day], validator) == .rangesIgnored)
        #expect(verdict(200, [:], validator) == .violation)
    }

    @Test func `an answer with another weak ETag is another version`() {
        let range = "bytes 100-199/1000"
        let weak = RangeValidator.weak("W/\"v1\"")
        #expect(verdict(206, [.contentRange: range, .eTag: "W/\"v1\""], weak) == .accepted)
        #expect(verdict(206, [.contentRange: range, .eTag: "W/\"v2\""], weak) == .changed)
        #expect(verdict(206, [.contentRange: range], .weak("")) == .accepted)
    }

    @Test func `a complete answer of the same version means that ranges are not served`() {
        #expect(verdict(200, [.eTag: "\"v1\""]) == .rangesIgnored)
    }
}
