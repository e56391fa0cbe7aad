/// The name that was probably meant by another one.
package enum NearestName {
    /// Returns the name with the fewest changed, missing or additional characters; nil if none is
    /// similar.
    package static func of(_ typed: String, in names: some Sequence<String>) -> String? {
        let nearest = names.map { (name: $0, distance: distance(typed, $0)) }
            .min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= (typed.count < 4 ? 1 : max(2, typed.count / 3))
        else { return nil }
        return nearest.name
    }

    /// A question about the nearest name, with a space before it; empty if none is similar.
    package static func question(about typed: String, in names: some Sequence<String>) -> String {
        of(typed, in: names).map { " Did you mean \($0)?" } ?? ""
    }

    /// Levenshtein's distance, without regard to case.
    private static func distance(_ first: String, _ second: String) -> Int {
        let (first, second) = (Array(first.lowercased()), Array(second.lowercased()))
        var row = Array(0...second.count)
        for (position, character) in first.enumerated() {
            var diagonal = row[0]
            row[0] = position + 1
            for column in second.indices {
                let replaced = diagonal + (character == second[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[second.count]
    }
}
