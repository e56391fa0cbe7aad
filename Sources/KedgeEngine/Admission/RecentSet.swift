/// A set of the most recently inserted values, of bounded size.
struct RecentSet<Element: Hashable & Sendable>: Equatable, Sendable {
    private let capacity: Int
    private var order: [Element?] = []
    private var next = 0
    private var places: [Element: Int] = [:]

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { places.count }

    func contains(_ element: Element) -> Bool { places[element] != nil }

    /// Inserts a value, evicting the oldest one when the set is full.
    mutating func insert(_ element: Element) {
        guard places[element] == nil else { return }
        if order.count < capacity {
            order.append(element)
            places[element] = order.count - 1
            return
        }
        if let old = order[next] { places[old] = nil }
        order[next] = element
        places[element] = next
        next = (next + 1) % capacity
    }

    mutating func remove(_ element: Element) {
        guard let place = places.removeValue(forKey: element) else { return }
        order[place] = nil
    }
}
