/**
 * What outlasts a reload of the page.
 */

/** Keeps one value for this browser tab alone. */
export class TabMemory<T> {
  /** @param _key Begins with this project's name: other extensions keep things beside it. */
  constructor(
    private readonly _storage: Storage,
    private readonly _key: string
  ) {}

  /** Hands over what was kept, if anything was and `take` can use it. */
  read(take: (value: T) => void): void {
    try {
      const text = this._storage.getItem(this._key);
      if (text !== null) {
        take(JSON.parse(text) as T);
      }
    } catch (error) {
      console.warn(`${this._key} could not be read`, error);
    }
  }

  /** Keeps a value instead of the one before; with `null` none. */
  write(value: T | null): void {
    try {
      if (value === null) {
        this._storage.removeItem(this._key);
      } else {
        this._storage.setItem(this._key, JSON.stringify(value));
      }
    } catch (error) {
      console.warn(`${this._key} would not outlast a reload`, error);
    }
  }
}
