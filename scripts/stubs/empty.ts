/** Stands for packages that a bundle leaves out. Nothing of it is ever called. */
export {};
