int nothing_of_headrace() { return 0; }
