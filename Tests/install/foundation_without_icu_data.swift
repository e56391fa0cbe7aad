// Does with Foundation what Kedge, GRDB and Yams do, in a program without the data of ICU.
import Foundation

func expect(_ isRight: Bool, _ subject: String) {
    guard !isRight else { return }
    print("\(subject): wrong")
    exit(1)
}

func matches(_ pattern: String, _ text: String) throws -> Bool {
    let expression = try NSRegularExpression(
        pattern: pattern, options: .allowCommentsAndWhitespace)
    let all = NSRange(text.startIndex..., in: text)
    return expression.firstMatch(in: text, range: all) != nil
}

// The scalars of YAML are resolved by regular expressions.
expect(try matches("^(?:[-+]?0b[0-1_]+|[-+]?(?:0|[1-9][0-9_]*))$", "-42"), "integer of YAML")
expect(try matches("^(?:true|True|TRUE)$", "True"), "boolean of YAML")
expect(try !matches("^(?:~|null|)$", "nil"), "null of YAML")
expect(try matches(#"^\w+\s\p{L}+$"#, "größe länge"), "classes of letters")
expect(try matches("(?i)^STRASSE\\sÉ$", "strasse é"), "case of letters")

let digits = String(format: "%.1f %3d%% %@", 1.25, 7, "ü")
expect(digits == "1.2   7% ü", "String(format:)")
expect("e\u{301}".precomposedStringWithCanonicalMapping.unicodeScalars.count == 1, "normal form C")

var calendar = Calendar(identifier: .gregorian)
calendar.timeZone = .gmt
let date = calendar.date(from: DateComponents(year: 2024, month: 2, day: 29, hour: 12))
expect(date?.timeIntervalSince1970 == 1_709_208_000, "date")
expect(date?.ISO8601Format() == "2024-02-29T12:00:00Z", "ISO 8601")

let parts = URLComponents(string: "https://u@[::1]:8080/a%20b?q=%C3%BC")
expect(parts?.encodedHost == "[::1]" && parts?.path == "/a b" && parts?.port == 8080, "URL")
expect(URLComponents(string: "http://bücher.example") == nil, "international host name")
let target = URL(string: "../c", relativeTo: URL(string: "http://h/a/b/"))?.absoluteString
expect(target == "http://h/a/c", "relative URL")
let escaped = "ü-1/é".addingPercentEncoding(withAllowedCharacters: .alphanumerics)
expect(escaped == "%C3%BC%2D1%2F%C3%A9", "percent encoding")

struct Value: Codable, Equatable { var name: String, number: Double }
let value = Value(name: "日本", number: 0.1)
let coded = try JSONEncoder().encode(value)
expect(try JSONDecoder().decode(Value.self, from: coded) == value, "JSON")
print("Foundation works without the data of ICU")
