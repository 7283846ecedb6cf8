/** An object that behaves as the given one, but for the members named. Methods keep their own `this`. */
export function replacing<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      if (Object.hasOwn(members, name)) return members[name as keyof T];
      const value: unknown = Reflect.get(object, name, object);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}
